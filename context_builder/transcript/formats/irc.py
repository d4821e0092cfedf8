"""Logs of IRC, as irssi, WeeChat, ZNC, HexChat and mIRC write them, and chats of LINE and KakaoTalk, which look alike.

Joins, modes and the like are not utterances.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from context_builder.transcript.fields import plain
from context_builder.transcript.moments import of_chat
from context_builder.transcript.offsets import offset, since_first
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, Utterance, name_of

_TIME: Final = (
    r"(?:\[?(?P<half0>[上下]午|午[前後]|오[전후])?"
    r"(?:(?P<date>\d{4}-\d\d-\d\d)[ T]|(?P<day>[A-Z][a-z]{2} {1,2}\d{1,2}) |(?P<long>[A-Z][a-z]+, [A-Z][a-z]+ "
    r"\d{1,2}, \d{4})\] \[)?(?P<time>\d{1,2}:\d\d(?::\d\d)?)(?: (?P<half>[AP]M))?(?: [A-Z]{3,4})?"
    r"(?:\.\d+)?(?P<utc>Z)?\]?)"
)
_NICK: Final = r"[^\s<>]{1,64}"
_FORMS: Final = (
    re.compile(rf"{_TIME}\s+<[ @+%~&!]?(?P<nick>{_NICK})>\s+(?P<text>.*)"),
    re.compile(rf"{_TIME}\s+[*•]\s+(?P<nick>{_NICK}) (?P<text>.*)"),  # /me
    re.compile(rf"{_TIME}\t[@+%~&!]?(?P<nick>[^\s<>*=-][^\t]{{0,63}})\t(?P<text>.*)"),
    re.compile(rf"{_TIME}\t *\*\t(?P<nick>{_NICK}) (?P<text>.*)"),
    re.compile(rf"{_TIME}\s+Action: (?P<nick>{_NICK}) (?P<text>.*)"),  # Eggdrop's
)
_KAKAO: Final = re.compile(
    r"\[(?P<nick>[^\[\]]{1,64})\] "
    r"\[(?:(?P<half>오전|오후) )?(?P<time>\d{1,2}:\d\d)(?: (?P<half2>[AP]M))?\] (?P<text>.*)"
)
_KAKAO_OLD: Final = re.compile(r"(?P<half>오전|오후) (?P<time>\d{1,2}:\d\d), (?P<nick>[^:\n]{1,64}?) : (?P<text>.*)")
_UNMARKED: Final = re.compile(rf"{_TIME} (?P<nick>[^\s<>*\[\]]{{1,64}}) (?P<text>\S.*)")
"""As LINE writes it on a computer, below the day: only the first word is known to be of the name."""

_TIMED: Final = re.compile(rf"{_TIME}\s")
_OFFSET_BEFORE_NAME: Final = re.compile(r"\d{1,2}:\d\d\t[^\t]{1,64}\t.*")
"""In a table of who says what, minutes and seconds: no log has all its lines in the hour after midnight."""

_HOUR: Final = 3600.0

_SAYS: Final = (_FORMS[0], _FORMS[2], _KAKAO, _KAKAO_OLD)
_SERVERS: Final = re.compile(
    r"\S+ (?:\(\S+@\S+\) has (?:joined|left|quit)|has (?:joined|left|quit|set|changed)\b|(?:is|are) now )|"
    r"Now talking |Topic (?:is|for) |Set by |Disconnected|Attempting "
)
"""What HexChat says of joins and the like, as an action of somebody's."""

_WEECHAT: Final = re.compile(rf"{_TIME}\t *(?:-->|<--|--|=!=)\t")
_DAYS: Final = re.compile(
    r"(?:--- (?:Log opened|Day changed)|\*\*\*\* (?:BEGIN|ENDING) LOGGING AT|Session Start:)\s+(?P<date>\S.*?)\s*|"
    r"(?P<other>(?:[^\W\d_]{2,4}\.?, )?\d{1,2}[./]\d{1,2}[./]\d{4})\s*(?:\([^\W\d_]{1,12}\))?\s*|"
    r"(?P<line>\d{4}[./]\d{1,2}[./]\d{1,2})\.?\s*[(（]?[^\W\d_]{1,12}[)）]?\s*|"
    r"(?:-{3,}\s*)?(?P<kakao>\d{4}년 \d{1,2}월 \d{1,2}일)(?: [월화수목금토일]요일)?\s*(?:-{3,}\s*)?"
)
_BEGINS: Final = re.compile(rf"\s*$|{_TIME}\s|\[|---|\*\*\*", re.ASCII)
"""What does not go on with a message of LINE or KakaoTalk."""

_WEEKDAY: Final = re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b")
_IN_NAME: Final = re.compile(r"(?<!\d)(\d{4})-?(\d\d)-?(\d\d)(?!\d)")


@dataclass(frozen=True, slots=True)
class _Message:
    nick: str
    text: str
    clock: float
    day: datetime | None


def is_irc(text: str) -> bool:
    """Return whether a text is a log of IRC, by its first lines."""
    lines = [line for line in text[:8000].split("\n") if line.strip()][:40]
    if any(line.startswith(("--- Log opened", "**** BEGIN LOGGING", "Session Start:")) for line in lines[:2]):
        return True
    says = sum(any(form.fullmatch(line) for form in _SAYS) for line in lines)
    if _is_unmarked(text):
        return True
    is_weechat = any(_WEECHAT.match(line) or _DAYS.fullmatch(line) for line in lines) or says == len(lines)
    return any(_FORMS[0].fullmatch(line) for line in lines) or (is_weechat and says > 0)


def _is_unmarked(text: str) -> bool:
    """Return whether a text begins with a day, and lines with a time have a few first words, and something behind."""
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or not _DAYS.fullmatch(lines[0]) or any(form.fullmatch(line) for line in lines[:40] for form in _SAYS):
        return False
    timed = [_UNMARKED.fullmatch(line) for line in lines if _TIMED.match(line)]
    names = [one["nick"] for one in timed if one]
    if len(names) < len(timed) or any(name.endswith(":") for name in names):
        return False
    return len(names) > 2 and 1 < len(set(names)) < len(names) / 2 + 1


def read_irc(source: Source) -> Transcript:
    """Return what was said: by the days that the log tells, or its file's name; else from the first message on."""
    messages = [*_messages(source)]
    lines = [line for line in source.text.split("\n") if line.strip()]
    is_of_recording = all(_OFFSET_BEFORE_NAME.fullmatch(line) for line in lines)
    if messages and all(one.day is not None for one in messages):
        return of_chat(
            ((one.day + timedelta(seconds=one.clock)).timestamp(), Utterance(one.nick, one.text))
            for one in messages
            if one.day is not None
        )
    since = since_first([one.clock for one in messages])
    if messages and is_of_recording and messages[0].clock < _HOUR:
        since = [one.clock / 60 for one in messages]
    said = [Utterance(one.nick, one.text, at) for one, at in zip(messages, since, strict=True)]
    return Transcript(said)


def _messages(source: Source) -> Iterator[_Message]:
    day = _day_of_name(source.name)
    begun: _Message | None = None  # one that may go on below
    below: list[str] = []
    forms = (*_FORMS, _KAKAO, _KAKAO_OLD, *([_UNMARKED] if _is_unmarked(source.text) else []))
    for number, line in enumerate(source.text.split("\n"), start=1):
        if told := _DAYS.fullmatch(line):
            day = _day(next(one for one in told.groups() if one)) or day
            continue
        found = next((one for form in forms if (one := form.fullmatch(line))), None)
        if begun is not None and found is None and not _BEGINS.match(line):
            below.append(line)
            continue
        if begun is not None:
            yield _with(begun, below)
            begun = None
        if found is None or not (
            text := plain(re.sub(r"[\x02\x0f\x16\x1d\x1f]|\x03(?:\d{1,2}(?:,\d{1,2})?)?", "", found["text"]))
        ):
            continue
        if found.re is _FORMS[1] and _SERVERS.match(f"{found['nick']} {text}"):
            continue
        parts = found.groupdict()
        with source.one_entry(number):
            here = day
            if parts.get("date"):
                moment = datetime.fromisoformat(parts["date"])
                here = moment.replace(tzinfo=UTC) if parts["utc"] else moment.astimezone()
            elif parts.get("long"):
                here = _day(parts["long"]) or day
            elif parts.get("day") and day is not None:
                here = _day(f"{parts['day']} {day.year}") or day
            message = _Message(name_of(parts["nick"]), text, _clock(parts), here)
            if found.re in (_KAKAO, _KAKAO_OLD, _UNMARKED) or (found.re is _FORMS[2] and not parts.get("date")):
                begun, below = message, []
            else:
                yield message
    if begun is not None:
        yield _with(begun, below)


def _with(message: _Message, below: list[str]) -> _Message:
    """Return a message with its further lines, without the quotation marks that LINE puts around several."""
    text = plain(" ".join([message.text, *below]))
    is_quoted = len(text) > 2 and text.startswith('"') and text.endswith('"') and text.count('"') == 2
    return replace(message, text=text[1:-1].strip() if is_quoted else text)


def _clock(parts: Mapping[str, str | None]) -> float:
    """Return the second of the day."""
    time, half = str(parts["time"]), parts.get("half") or parts.get("half2") or parts.get("half0")
    seconds = offset(time if time.count(":") == 2 else f"{time}:00")
    if half is None:
        return seconds
    return seconds % 43_200 + (43_200 if half in ("PM", "오후", "下午", "午後") else 0)


def _day(told: str) -> datetime | None:
    """Return the beginning of the day that a program names, such as ``Mon Jan 15 10:41:00 2024``."""
    if "년" in told:
        told = "-".join(f"{int(number):02}" for number in re.findall(r"\d+", told))
    words = [word for word in told.replace(",", " ").split() if ":" not in word]
    if ordered := _OTHER.search(told):
        days = [one for one in _either(ordered[1]) if one is not None]
        named = _WEEKDAY.search(told)
        return next((one for one in days if named and f"{one:%a}" == named[0]), days[0] if days else None)
    for form in ("%a %b %d %Y", "%A %B %d %Y", "%b %d %Y", "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d"):
        try:
            return datetime.strptime(" ".join(words), form).astimezone()
        except ValueError:
            continue
    return None


_OTHER: Final = re.compile(r"(\d{1,2}[./]\d{1,2}[./]\d{4})")


def _either(date: str) -> Iterator[datetime | None]:
    """Yield the day of a date with the day first, and with the month first; None where that is not a day."""
    first, second, year = (int(one) for one in re.split(r"[./]", date))
    for day, month in ((first, second), (second, first)):
        try:
            yield datetime(year, month, day).astimezone()
        except ValueError:
            yield None


def _day_of_name(name: str) -> datetime | None:
    found = _IN_NAME.search(re.split(r"[/\\]", name)[-1])
    try:
        return datetime(int(found[1]), int(found[2]), int(found[3])).astimezone() if found else None
    except ValueError:
        return None
