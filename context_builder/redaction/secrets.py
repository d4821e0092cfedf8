"""Masking of keys, tokens and passwords, for texts as a whole and as they come in."""

from __future__ import annotations

import re
from typing import Final

from context_builder.redaction.broken_secrets import LINE_ENDS, broken_secrets, known_until
from context_builder.redaction.line_context import LineContext
from context_builder.redaction.secret import masked, placeholder
from context_builder.redaction.secret_formats import secret_formats

_KEY_BEGINS: Final = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}|PuTTY-User-Key-File-\d")
_KEY_ENDS: Final = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_KEY_LINE: Final = re.compile(r"\s*(?:[A-Za-z0-9+/=]{16,}|[A-Za-z0-9+/]*={0,2}|[A-Za-z-]+: .*)\s*")
"""A line within a private key: base64, a header, or nothing."""

_LINE_END: Final = re.compile(f"(\r\n|[{LINE_ENDS}])")
_LONGEST_PREFIX: Final = 120
_QUOTED: Final = re.compile(r"[>|\s]*")


class SecretRedactor:
    """Puts ``§§secret(KIND)`` in place of secrets; such placeholders are left as they are, never resolved.

    Secrets are looked for line by line, private keys over several lines, and others across the breaks between lines.
    """

    def __init__(self) -> None:
        secret_formats()  # read them now, not in the first turn

    def redact(self, text: str) -> str:
        """Return ``text`` with its secrets masked."""
        stream = self.stream()
        return stream.feed(text) + stream.close()

    def stream(self) -> SecretStream:
        """Redact a text that comes in pieces."""
        return SecretStream()


class SecretStream:
    """Redacts a text that comes in pieces, wherever they are cut: the output is what the whole text gives.

    It holds back the line that is not finished yet, and those that a secret may go on from.
    """

    def __init__(self) -> None:
        self._held: list[str] = []
        self._waits = False
        self._within_key = False
        self._prefix = _QUOTED
        self._context = LineContext()

    def feed(self, piece: str) -> str:
        """Take the next piece, and return what is safe to show of all so far."""
        self._held.append(piece)
        if "\n" not in piece and not self._waits:
            return ""
        text = "".join(self._held)
        cut = known_until(text)
        self._held, self._waits = [text[cut:]], "\n" in text[cut:]
        return self._lines(text[:cut])

    def close(self) -> str:
        """Return the rest, once nothing more comes."""
        text, self._held, self._waits = "".join(self._held), [], False
        shown = self._lines(text)
        self._within_key = False
        self._context = LineContext()
        return shown

    def _lines(self, text: str) -> str:
        """Return whole lines, of which the last one need not be ended, without their secrets."""
        pieces = [*_LINE_END.split(masked(text, broken_secrets(text))), ""]
        return "".join(self._shown(*line) for line in zip(pieces[::2], pieces[1::2], strict=True) if any(line))

    def _shown(self, line: str, newline: str) -> str:
        """Return a line without its secrets; nothing for a line within a private key."""
        shown: list[str] = []
        at = 0
        if self._within_key and not _KEY_ENDS.search(line) and not self._goes_on(line):
            self._within_key = False  # the key broke off: people talk again
            shown.append("\n")
        while True:
            if self._within_key:
                ends = _KEY_ENDS.search(line, at)
                if ends is None:
                    return "".join(shown)
                self._within_key, at = False, ends.end()
            begins = _KEY_BEGINS.search(line, at)
            if begins is None:
                return "".join((*shown, self._masked(line[at:]), newline))
            shown += (self._masked(line[at : begins.start()]), placeholder("PRIVATE_KEY"))
            self._within_key, at = True, begins.end()
            self._prefix = _prefix_like(line[: begins.start()])

    def _masked(self, line: str) -> str:
        return masked(line, self._context.secrets(line))

    def _goes_on(self, line: str) -> bool:
        """Return whether a line is one of the key, behind a prefix such as the key's first line has."""
        prefix = self._prefix.match(line)
        return bool(_KEY_LINE.fullmatch(line, prefix.end() if prefix else 0))


def _prefix_like(prefix: str) -> re.Pattern[str]:
    """Return a pattern for what stands before each line of a quoted or logged text: quotation marks, or the same words
    with other numbers, as times have them.
    """
    if len(prefix) > _LONGEST_PREFIX:
        return _QUOTED
    same = re.sub(r"[0-9]+", "[0-9]+", re.escape(prefix.rstrip()))
    return re.compile(rf"(?:{same})?{_QUOTED.pattern}")
