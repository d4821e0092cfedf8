"""Masking of keys, tokens and passwords, for texts as a whole and as they come in."""

from __future__ import annotations

import re
from typing import Final

from context_builder.redaction.codes import CodeList
from context_builder.redaction.named_secrets import NAME, SECRET_KINDS, Syntax, is_secret_value
from context_builder.redaction.pieces import LINE_ENDS
from context_builder.redaction.secret import Secret, masked, merged, placeholder
from context_builder.redaction.secret_patterns import secret_formats, secrets_in
from context_builder.redaction.secret_values import NameKind, is_like_a_password, is_mixed, is_random, kind_of_name
from context_builder.redaction.secrets_across_lines import broken_secrets, known_until
from context_builder.redaction.tables import Columns

_OPENERS: Final = (":", "|", ">", "|-", ">-", "|+", ">+")
_ASSIGNS: Final = ("=", "\\", "(")
_OPENED: Final = re.compile(
    r"(?:\\{0,3}[\"'`]|[\])*]){0,3}(?:\s(?:is|was|below|follows|here))?\s{0,4}"
    r"(?::{1,2}\**\s{0,4}(?:[|>][+-]?\d?)?|>|:?=\s{0,4}[\\(]?)\s{0,8}$"
)
_OPENING: Final = 200
"""Characters at the end of a line in which the name of the value below is looked for."""

_NAME_ENTRY: Final = re.compile(r"[\s>|#*-]{0,80}[\"']?name[\"']?:\s{1,4}[\"']?([\w.-]{2,80})[\"']?,?\s{0,8}$")
_NAME_OF_FORM: Final = re.compile(
    r"Content-Disposition:[^\n]{0,40} name=[\"']([\w.-]{2,80})[\"']\s{0,8}$", re.IGNORECASE
)
_NAME_IN_CELL: Final = re.compile(
    r"\s{0,80}<[a-z]{1,10}(?:\s[^<>]{0,80})?>([\w .-]{2,40})[\s:]{0,4}</[a-z]{1,10}>\s{0,8}$"
)
_VALUE_IN_CELL: Final = re.compile(r"\s{0,80}(?:<[a-z]{1,10}(?:\s[^<>]{0,80})?>){1,3}([^<\s]{6,1000})</")
_FENCE: Final = re.compile(r"[\s>]{0,16}(?:`{3}|~{3})[\w-]{0,20}\s{0,8}$")
_NAME_ELEMENT: Final = re.compile(r"\s{0,80}<(?:key|name)>([\w.-]{2,80})</(?:key|name)>\s{0,8}$")
_VALUE_ELEMENT: Final = re.compile(r"\s{0,80}<(?:value|string)>([^<]{4,4000})</")
_LIST_ITEM: Final = re.compile(r"\s{0,80}-\s")
_VALUE_ENTRY: Final = re.compile(
    r"[\s>|#*:-]{0,80}(?:\d{1,2}[.)]\s{1,4})?(?:[\"']?value[\"']?\s{0,2}[:=]\s{0,4})?(?:[^\W\d][\w.'’-]{0,40}:\s{1,4})?[\"'`]?((?:[^\s\"'`<]|<(?!/)){6,4000})[\"'`]?[,;]?\s{0,8}$"
)
_NAME_ALONE: Final = re.compile(
    r"[\s>#*_[-]{0,80}(?:\d{1,2}[.)]\s{1,4})?((?:[\w-]{2,40}\s){0,2}[\w-]{2,40})[\s#*_\]]{0,8}$"
)
"""A heading, or the name of a field above its value."""
_ASKED: Final = re.compile(r"\b(?:passwords?|passphrase|passcode|pwd?)\b[^.!?]{0,60}\?\s{0,8}$", re.IGNORECASE)
"""Somebody asks for a password."""
_DATA: Final = re.compile(r"(\s*)(?:string)?data:\s*$", re.IGNORECASE)
_DATA_ENTRY: Final = re.compile(
    r"\s+[\"']?[\w.-]{1,80}[\"']?:\s{0,4}(?:([\"']?)([A-Za-z0-9+/]{10,8000}={0,2})\1\s*$|[|>][+-]?\s*$)"
)
_GOES_ON: Final = re.compile(
    r"[\s>|#*-]{0,16}((?=\S{0,999}(?:\d|[a-z][A-Z]|[A-Z]{2}[a-z]))[A-Za-z0-9_+/.~-]{4,1000}={0,2})"
    r"(?P<alone>[.,;:!?]?\s{0,8}$)?"
)
"""What a line begins with that is not a word: the rest of a secret that ended the line before."""
_ENDS_MASKED: Final = re.compile(r"§§secret\((?!PRIVATE_KEY)[^)\s]{0,64}\)\s{0,8}$")
_PUBLIC_BLOCK: Final = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}(?:CERTIFICATE|PUBLIC KEY|MESSAGE|SIGNATURE)")


class LineContext:
    """Finds the secrets of lines that are given one after the other."""

    def __init__(self) -> None:
        self._name_above = NameKind.UNKNOWN
        self._data_indent: str | None = None
        self._is_public = False
        self._broken_off = ""
        self._is_alone = False
        """The name above stands alone on its line, so that code and talk may follow it as well as a value."""
        self._columns = Columns()
        self._codes = CodeList()

    def secrets(self, line: str) -> list[Secret]:
        """Return the secrets of the next line, in order, none overlapping another."""
        is_public = self._is_public or self._name_above == NameKind.HARMLESS
        found = secrets_in(line, without_context=not is_public)
        below = None if _FENCE.match(line) else self._value_below(line)
        listed = [*self._codes.secrets(line)]
        in_cells = [*self._columns.secrets(line)]
        if told := [*([below] if below else ()), *(in_cells or listed)]:
            found = merged((*told, *found))
        elif self._broken_off and (rest := _GOES_ON.match(line)) and _is_rest(rest):
            found = [Secret(*rest.span(1), self._broken_off)]
        if line and not line.isspace():
            self._note(line)
            is_broken = found and found[-1].end >= len(line.rstrip()) and found[-1].kind != "PIN"
            self._broken_off = found[-1].kind if is_broken else ""
            if _ENDS_MASKED.search(line, max(0, len(line) - 90)):
                self._broken_off = "KEY"
        return found

    def _value_below(self, line: str) -> Secret | None:
        """Return the value on ``line`` of a name on a line before."""
        if self._name_above > NameKind.KEY and (value := _VALUE_ELEMENT.match(line)):
            if is_secret_value(value[1], self._name_above, Syntax.ELEMENT, quoted=True):
                return Secret(*value.span(1), SECRET_KINDS[self._name_above])
        elif self._name_above > NameKind.KEY and (value := _VALUE_ENTRY.match(line) or _VALUE_IN_CELL.match(line)):
            told = Syntax.DASHED if self._is_alone else Syntax.TOLD
            if is_secret_value(value[1], self._name_above, told, quoted=False):
                return Secret(*value.span(1), SECRET_KINDS[self._name_above])
        elif self._is_in_data(line) and (entry := _DATA_ENTRY.match(line)) and entry[2] and _is_base64(entry[2]):
            return Secret(*entry.span(2), SECRET_KINDS[NameKind.TOKEN])
        return None

    def _is_in_data(self, line: str) -> bool:
        indent = self._data_indent
        return indent is not None and line.startswith(indent) and line[len(indent) : len(indent) + 1].isspace()

    def _note(self, line: str) -> None:
        """Keep what a line says of those below it."""
        if _FENCE.match(line):
            return
        self._is_alone = False
        if not _LIST_ITEM.match(line):
            self._name_above = NameKind.UNKNOWN
        if entry := _NAME_ENTRY.match(line) or _NAME_ELEMENT.match(line) or _NAME_OF_FORM.match(line):
            self._name_above = kind_of_name(entry[1])
        elif (cell := _NAME_IN_CELL.match(line)) and (kind := kind_of_name(cell[1])):
            self._name_above, self._is_alone = kind, True
        elif line.rstrip().endswith(_OPENERS):
            self._name_above = _name_at_end(line[-_OPENING:]) or self._name_above
        elif line.rstrip().endswith(_ASSIGNS) and (kind := _name_at_end(line[-_OPENING:])):
            self._name_above = kind
        elif (alone := _NAME_ALONE.match(line)) and (kind := kind_of_name(alone[1])):
            self._name_above, self._is_alone = kind, True
        elif _ASKED.search(line, max(0, len(line) - _OPENING)):
            self._name_above, self._is_alone = NameKind.PASSWORD, True
        if data := _DATA.match(line):
            self._data_indent = data[1]
        elif not self._is_in_data(line):
            self._data_indent = None
        elif _DATA_ENTRY.match(line) and line.rstrip().endswith(_OPENERS):
            self._name_above = NameKind.TOKEN
        if "-----" in line and (block := _PUBLIC_BLOCK.search(line)):
            self._is_public = block[1] == "BEGIN"


def _is_rest(match: re.Match[str]) -> bool:
    """Return whether what a line begins with may be the rest of a secret: all of the line, or much mixed."""
    return match["alone"] is not None or is_mixed(match[1]) or is_random(match[1])


def _name_at_end(line: str) -> NameKind:
    """Return what the name at the end of a line says of the value below it."""
    opened = (name.group() for name in NAME.finditer(line) if _OPENED.match(line, name.end()))
    return max(map(kind_of_name, opened), default=NameKind.UNKNOWN)


def _is_base64(value: str) -> bool:
    """Return whether a value of whole groups of four has what words have not: padding, digits, or capitals within."""
    return len(value) % 4 == 0 and (value.endswith("=") or is_like_a_password(value) or not value[1:].islower())


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
        return SecretStream(text).close()

    def stream(self) -> SecretStream:
        """Redact a text that comes in pieces."""
        return SecretStream()


class SecretStream:
    """Redacts a text that comes in pieces, wherever they are cut: the output is what the whole text gives.

    It holds back the line that is not finished yet, and those that a secret may go on from.
    ``begun`` is the first piece, if there is one already.
    """

    def __init__(self, begun: str = "") -> None:
        self._held = [begun]
        self._waits = "\n" in begun
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
