"""Lines of text that are piped in: ``Ida: …``, ``[00:00:03] Ida: …``, ``<ida> …``; and what carries JSON on a line.

Also the cues of subtitles, and what whisper_streaming, pyannote-whisper and sherpa-onnx print.
"""

from __future__ import annotations

import re
from typing import Final

from context_builder.transcript.fields import plain
from context_builder.transcript.labels import Labels, is_written_as_name
from context_builder.transcript.offsets import CLOCK
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Utterance, name_of

_TIME: Final = re.compile(
    rf"\s*[\[(]\d{{1,6}}(?:\.\d{{1,6}})?\s?s[\])]\s+|\s*+(?:[\[(]\s*+)?{CLOCK}(?:\s?[AaPp][Mm])?(?:\s*(?:-+>|[-–—])\s*{CLOCK})?\s*[\])]?\s+(?:[-–—|]\s+)?"
)
_TIMED_NAME: Final = re.compile(
    rf"\s*(?P<who>[^\s:\[(][^:\[(\n]{{0,78}}?)\s{{0,4}}(?:\[{CLOCK}\]|\({CLOCK}\))(?P<colon>:?)\s+(?P<text>\S.*)"
)
"""A name with a time in brackets behind it, before what is said; without a colon, a sentence may have one, too."""

_NICK: Final = re.compile(r"\s*<[ @+%~&!]?([^\s<>]{1,64})>\s+(\S.*)")
_PRIVATE_MESSAGE: Final = re.compile(r"(?:@\S+ )?:([^\s!]{1,64})!\S+ PRIVMSG \S+ :(.+)")
"""As a server of IRC sends it: https://modern.ircdocs.horse/#privmsg-message."""

_UNSAID: Final = re.compile(
    r"(?:@\S+ )?(?:(?:PING|PONG) (?::\S.*|\S*[.\d]\S*)|:\S+ QUIT|"
    r":\S+ (?:JOIN|PART|QUIT|NICK|MODE|KICK|CAP|TOPIC|NOTICE|USERSTATE|ROOMSTATE|CLEARCHAT|PONG|\d{3}) .*)"
)
"""What else such a server sends, also Twitch's."""

_OF_SERVER: Final = re.compile(rf"\s*[\[(]?{CLOCK}[\])]?\s+(?:\*{{3}}|-!-)\s.*")
"""What a log of IRC has of those who come and go."""

_ACTION: Final = re.compile(r"\x01ACTION ([^\x01]*)\x01?")
_CUE: Final = re.compile(rf"\s*{CLOCK}\s*-->\s*{CLOCK}(?:\s+\w+:\S*)*\s*|WEBVTT(?:\s.*)?")
_NUMBER: Final = re.compile(r"\s*(\d{1,6})\s*")
_VOICE: Final = re.compile(r"<v(?:\.[^\s<>]*)?\s(?P<who>[^<>]{1,120})>(?P<text>.*?)(?:</v>)?\s*")
_TURN: Final = re.compile(
    r"\s*(?P<start>\d{1,6}\.\d{1,3})s?\s+(?:-{1,2}>?\s+)?\d{1,6}\.\d{1,3}s?\s+"
    r"(?P<who>(?:SPEAKER|speaker|spk)_\d{1,4}):?\s+(?P<text>\S.*)"
)
_EMITTED: Final = re.compile(r"(?:\d{1,9}\.\d{4} )?(?P<start>\d{1,9}) (?P<end>\d{1,9}) (?P<text>\S.*)")
"""When it was written, and two times, all in milliseconds; the server leaves out the first."""

_SHORTEST: Final = 100
"""Milliseconds that it takes to say something."""

_DIARIZED: Final = re.compile(r"SPEAKER \S+ \d+ [\d.]+ [\d.]+ <NA> <NA> \S+ <NA>(?: <NA>)?\s*")
"""Who speaks when, and nothing that is said (RTTM)."""

_ONE_WORD: Final = re.compile(r"\s*([^\W\d_][\w.'’-]{0,39}):\s+(\S.*)")
_EVENT: Final = re.compile(r"\A\s*data:\s*")
_OF_STREAM: Final = re.compile(
    r"\s*(?::.*|(?:event|id|retry):.*|data:\s*\[DONE\]\s*|"
    r"### Transcription \d+ (?:START|END)\b.*|\[Start speaking\]\s*)"
)
"""What a stream of server-sent events has beside data: comments, names of events, and its end; and what whisper.cpp's
stream has."""

_ERASED: Final = re.compile(r"\x1b\[[0-2]?K")
_CODE: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""Codes of terminals: https://ecma-international.org/publications-and-standards/standards/ecma-48/."""

_SOCKET_IO: Final = re.compile(r"\A\s*4?\d{1,3}(?=\[)")


_BLANKS: Final = re.compile(r"\s{257,}")


def with_few_blanks(line: str) -> str:
    """Return a line without more blanks in a row than anybody writes, which patterns would look through again."""
    return _BLANKS.sub(" ", line)


def carried(line: str) -> str | None:
    """Return the JSON that a line of server-sent events or of Socket.IO carries; None where it carries nothing."""
    if _PRIVATE_MESSAGE.fullmatch(line.strip()):
        return line
    if any(form.fullmatch(line.strip()) for form in (_OF_STREAM, _UNSAID, _DIARIZED, _OF_SERVER)):
        return None
    return _SOCKET_IO.sub("", _EVENT.sub("", line, count=1), count=1)


def last_state(line: str) -> tuple[str, bool]:
    """Return what a line shows in the end, without colors, and whether it was erased and written again before."""
    if "\x1b" not in line:
        return line, False
    is_redrawn = _ERASED.search(line) is not None
    states = [_CODE.sub("", state) for state in (line.split("\r") if is_redrawn else [line])]
    return next((state for state in reversed(states) if state.strip()), ""), is_redrawn


def _lasts(found: re.Match[str]) -> bool:
    """Return whether two numbers are times between which something may be said; others are said themselves."""
    return int(found["end"]) - int(found["start"]) >= _SHORTEST


class PlainLines:
    """Reads lines that are not JSON; who spoke last goes on on a line that names nobody."""

    def __init__(self) -> None:
        self._last = ""
        self.is_in_cues = False
        self._cues = 0
        self._number: int | None = None
        self._is_below_times = False

    def is_of_cue(self, line: str) -> bool:
        """Return whether a line is of subtitles and not said: their first one, times, or a number above these.

        Such numbers count the cues; any other number is said.
        """
        is_text, is_times = self._is_below_times, _CUE.fullmatch(line) is not None
        self._is_below_times = is_times and "-->" in line
        self._cues += self._is_below_times
        self.is_in_cues |= is_times
        if is_text or not (number := _NUMBER.fullmatch(line)):
            return is_times
        expected = (self._cues if self._number is None else self._number) + 1
        self._number = int(number[1])
        return self.is_in_cues and self._number == expected

    def read(self, line: str, *, is_speech: bool = False) -> Utterance | None:
        """Return what a line says; None where it has neither a name nor a time, and none before had one.

        One that ``is_speech`` needs neither.
        """
        if nick := _PRIVATE_MESSAGE.fullmatch(line.strip()) or _NICK.fullmatch(line.rstrip()):
            return self._said(nick[1], _ACTION.sub(r"\1", nick[2]))
        if turn := _TURN.fullmatch(line):
            return self._said(turn["who"], turn["text"])
        if not self._last and (emitted := _EMITTED.fullmatch(line)) and _lasts(emitted):
            return Utterance(UNKNOWN_SPEAKER, plain(emitted["text"]))
        if self.is_in_cues and (voice := _VOICE.fullmatch(line)):
            return self._said(voice["who"], voice["text"])
        time = _TIME.match(line)
        rest = plain(line[time.end() :] if time else line)
        if time and (nick := _NICK.fullmatch(rest)):
            return self._said(nick[1], nick[2])
        named = None if time else _TIMED_NAME.fullmatch(line)
        goes_on = named is not None and not named["colon"] and named["text"][0].islower()  # a sentence, with a time
        if named is not None and not goes_on and is_written_as_name(named["who"]):
            return self._said(named["who"], named["text"])
        if not rest or ("\ufffd" in rest and not any(one.isalnum() for one in rest)):
            return None
        told = Labels([rest]).line(rest)
        one_word = _ONE_WORD.fullmatch(rest)
        if told.speaker is not None:
            return self._said(told.speaker, told.text)
        if one_word:
            return self._said(one_word[1], one_word[2])
        if time or is_speech or self.is_in_cues:
            return self._said(self._last or UNKNOWN_SPEAKER, rest)
        return self._said(self._last, rest) if self._last else None

    def _said(self, who: str, text: str) -> Utterance | None:
        self._last = name_of(who)
        return Utterance(self._last, plain(text)) if text.strip() else None
