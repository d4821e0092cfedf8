"""Lines of text that are piped in: ``Ida: …``, ``[00:00:03] Ida: …``, ``<ida> …``; and what carries JSON on a line."""

from __future__ import annotations

import re
from typing import Final

from context_builder.transcript.fields import plain
from context_builder.transcript.labels import Labels
from context_builder.transcript.offsets import CLOCK
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Utterance, name_of

_TIME: Final = re.compile(
    rf"\s*[\[(]?\s*{CLOCK}(?:\s?[AaPp][Mm])?(?:\s*(?:-+>|[-–—])\s*{CLOCK})?\s*[\])]?\s+(?:[-–—|]\s+)?"
)
_NICK: Final = re.compile(r"\s*<[ @+%~&!]?([^\s<>]{1,64})>\s+(\S.*)")
_PRIVATE_MESSAGE: Final = re.compile(r"(?:@\S+ )?:([^\s!]{1,64})!\S+ PRIVMSG \S+ :(.+)")
"""As a server of IRC sends it: https://modern.ircdocs.horse/#privmsg-message."""

_ONE_WORD: Final = re.compile(r"\s*([^\W\d_][\w.'’-]{0,39}):\s+(\S.*)")
_EVENT: Final = re.compile(r"\s*data:\s*")
_OF_STREAM: Final = re.compile(
    r"\s*(?::.*|(?:event|id|retry):.*|data:\s*\[DONE\]\s*|"
    r"### Transcription \d+ (?:START|END)\b.*|\[Start speaking\]\s*)"
)
"""What a stream of server-sent events has beside data: comments, names of events, and its end; and what whisper.cpp's
stream has."""

_ERASED: Final = re.compile(r"\x1b\[[0-2]?K")
_CODE: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""Codes of terminals: https://ecma-international.org/publications-and-standards/standards/ecma-48/."""

_SOCKET_IO: Final = re.compile(r"\s*4?\d{1,3}(?=\[)")


def carried(line: str) -> str | None:
    """Return the JSON that a line of server-sent events or of Socket.IO carries; None where it carries nothing."""
    if _OF_STREAM.fullmatch(line) and not _PRIVATE_MESSAGE.fullmatch(line.strip()):
        return None
    return _SOCKET_IO.sub("", _EVENT.sub("", line, count=1), count=1)


def last_state(line: str) -> tuple[str, bool]:
    """Return what a line shows in the end, without colors, and whether it was erased and written again before."""
    if "\x1b" not in line:
        return line, False
    is_redrawn = _ERASED.search(line) is not None
    states = [_CODE.sub("", state) for state in (line.split("\r") if is_redrawn else [line])]
    return next((state for state in reversed(states) if state.strip()), ""), is_redrawn


class PlainLines:
    """Reads lines that are no JSON; who spoke last goes on on a line that names nobody."""

    def __init__(self) -> None:
        self._last = ""

    def read(self, line: str, *, is_speech: bool = False) -> Utterance | None:
        """Return what a line says; None where it has neither a name nor a time, and none before had one.

        One that ``is_speech`` needs neither.
        """
        if nick := _PRIVATE_MESSAGE.fullmatch(line.strip()) or _NICK.fullmatch(line.rstrip()):
            return self._said(nick[1], nick[2])
        time = _TIME.match(line)
        rest = plain(line[time.end() :] if time else line)
        if not rest or ("\ufffd" in rest and not any(one.isalnum() for one in rest)):
            return None
        told = Labels([rest]).line(rest)
        one_word = _ONE_WORD.fullmatch(rest)
        if told.speaker is not None:
            return self._said(told.speaker, told.text)
        if one_word:
            return self._said(one_word[1], one_word[2])
        if time or is_speech:
            return self._said(self._last or UNKNOWN_SPEAKER, rest)
        return self._said(self._last, rest) if self._last else None

    def _said(self, who: str, text: str) -> Utterance | None:
        self._last = name_of(who)
        return Utterance(self._last, plain(text)) if text.strip() else None
