"""Moments of the calendar in transcripts: those of each message of a chat, and when a recording began."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from context_builder.clock import moment
from context_builder.transcript.fields import Object, number
from context_builder.transcript.utterance import Transcript, Utterance
from context_builder.transcript.written_dates import moment_of, named_date, written

_LATEST: Final = 20e9
"""Epoch seconds after which a number is one of milliseconds or microseconds."""

_NAMED: Final = re.compile(r"(?P<zone>GMT)?(?<!\d)(?P<day>(?:19|20)\d{6})[-_](?P<time>\d{6})(?!\d)")
"""``GMT20230503-090000`` (Zoom) and ``20230503_090000`` (Teams) in the names of files."""

_CLOCK: Final = (
    r"(?P<hour>[0-2]?\d)(?P<sign>[-_.:h])(?P<minute>[0-5]\d)(?:[-_.:m](?P<second>[0-5]\d))?(?:\s?(?P<half>[AaPp][Mm]))?|"
    r"(?P<hours>[0-2]\d)(?P<minutes>[0-5]\d)(?:(?P<seconds>[0-5]\d)(?:\d{3})?)?"
)
_STAMPED: Final = re.compile(
    r"(?<!\d)(?:(?P<year>(?:19|20)\d\d)(?P<between>[-_.]?)(?P<month>0\d|1[0-2])(?P=between)(?P<day>[0-3]\d)|"
    r"(?P<day2>[0-3]?\d)\.(?P<month2>[01]?\d)\.(?P<year2>20\d\d)|"
    r"(?P<month3>[01]\d)-(?P<day3>[0-3]\d)-(?P<year3>20\d\d)(?=, \d\d-\d\d [AP]M))"
    rf"(?:(?:[T_-]|,?\s|\s?(?:at|um|kl\.?|à|@|-)\s)(?:{_CLOCK})(?P<zone>Z)?)?(?!\d)"
)
"""``2023-05-03 09-30-00`` (OBS), ``2023-05-03 at 9.30.00 AM`` (macOS), ``20230503T093000Z``, ``03.05.2023``, and
``05-23-2023, 09-02 AM`` (TranscripTonic)."""

_MOST_DAYS: Final = 31
_YEAR: Final = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_LONGEST_LINE: Final = 120


def of_chat(said: Iterable[tuple[float, Utterance]]) -> Transcript:
    """Return the transcript of messages with their epoch seconds, in the order of these."""
    ordered = sorted(said, key=lambda one: one[0])
    if not ordered:
        return Transcript([])
    first = ordered[0][0]
    started = moment(first)
    utterances = [replace(utterance, at=at - first) for at, utterance in ordered]
    return Transcript(utterances, started.astimezone() if started else None)


def epoch_seconds(seconds: float, name: str) -> float:
    """Return seconds, milliseconds or microseconds of the epoch as seconds. Raises :class:`ValueError`."""
    for unit in (1.0, 1e3, 1e6):
        if 0 <= seconds / unit < _LATEST:
            return seconds / unit
    raise ValueError(f"{name} is not a moment")


def epoch_of(message: Object, key: str, name: str) -> float:
    """Return the epoch second in a field of a message that ``name`` names. Raises :class:`ValueError`."""
    found = number(message, key, name)
    if found is None:
        raise ValueError(f'{name} has no "{key}"')
    return epoch_seconds(found, f'"{key}" of {name}')


def in_file_name(name: str) -> datetime | None:
    """Return the moment that the name of a file tells; the beginning of the day where it tells the date alone."""
    if (told := _in_stamp(name)) is not None:
        return told
    found = _STAMPED.search(name)
    if found is None:
        return None
    part = {key: int(value) for key, value in found.groupdict().items() if value and value.isdigit()}
    year, month, day = (
        next(part[f"{key}{form}"] for form in ("", 2, 3) if f"{key}{form}" in part) for key in ("year", "month", "day")
    )
    minute, second = (part.get(key, part.get(f"{key}s", 0)) for key in ("minute", "second"))
    hour = part.get("hour", part.get("hours", 0))
    if half := found["half"]:
        hour = hour % 12 + (12 if half.lower() == "pm" else 0)
    try:
        told = datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None
    return told.replace(tzinfo=UTC) if found["zone"] else told.astimezone()


def _in_stamp(name: str) -> datetime | None:
    if found := _NAMED.search(name):
        try:
            told = datetime.strptime(found["day"] + found["time"], "%Y%m%d%H%M%S")
        except ValueError:
            return None
        return told.replace(tzinfo=UTC) if found["zone"] else told.astimezone()
    return None


def in_heading(lines: Iterable[str]) -> datetime | None:
    """Return the first moment that a line of a heading tells, such as ``Wed, May 3, 2023 9:00AM``."""
    for line in lines:
        if len(line) <= _LONGEST_LINE and _YEAR.search(line):
            if (named := _in_stamp(line)) is not None:
                return named
            if (told := _told(line)) is not None:
                return told
    return None


def _told(line: str) -> datetime | None:
    line = _EASTERN.sub(r"\g<y>-\g<m>-\g<d> ", line)
    if ((day := written(line)) is not None) and day.half and not day.half.isascii() and day.parts[0] > _MOST_DAYS:
        with suppress(ValueError):
            return moment_of(day, "ymd")
    parts = [part for part in re.split(r"[•·・|()\[\]]| [-–—] |\t", line) if _YEAR.search(part)]
    for part in parts:
        cleaned = re.sub(r"^\W*(?:date|recorded|meeting started|started)\W+", "", part.strip(), flags=re.IGNORECASE)
        settings: dict[str, Any] = {"RELATIVE_BASE": datetime(2000, 1, 1)}
        within = _DATE_WITHIN.search(cleaned)
        order = {"DATE_ORDER": "DMY"} if within and _DOTTED.match(within[0]) else {}
        for text in (cleaned, _OCLOCK.sub("", within[0]) if within else ""):
            found = named_date(text, **settings, **order)
            if found is not None:
                return found if found.tzinfo else found.astimezone()
    return None


_EASTERN: Final = re.compile(
    r"(?<!\d)(?P<y>(?:19|20)\d\d)\s?[.\u5e74\ub144]\s?(?P<m>1[0-2]|0?[1-9])\s?[.\u6708\uc6d4]\s?"
    r"(?P<d>[12]\d|3[01]|0?[1-9])(?!\d)[.\u65e5\uc77c]?(?:\s?[(\uff08]?[\u6708\u706b\u6c34\u6728\u91d1\u571f\u65e5\uc6d4\ud654\uc218\ubaa9\uae08\ud1a0\uc77c][)\uff09]?(?=\s))?"
)
"""A date with the year first, as Korea, Japan and China write it, and the day of the week behind it."""

_DATE_WITHIN: Final = re.compile(
    r"[^\W\d_]{3,12}\.? \d{1,2},? \d{4}.*|(?<!\d)\d{1,2}\.? (?:de )?[^\W\d_]{3,12}\.? (?:de )?\d{4}.*|"
    r"(?<!\d)\d{4}-\d{1,2}-\d{1,2}.*|(?<!\d)\d{1,2}[./]\d{1,2}[./]\d{4}.*"
)
_DOTTED: Final = re.compile(r"\d{1,2}\.\d{1,2}\.")
_OCLOCK: Final = re.compile(r"\s?(?:Uhr|uur|h|hrs)\s*$")
"""A date and what follows it in a line that has words before it, and what stands behind a time of the day."""


def iso(text: str) -> datetime:
    """Return the moment of ISO 8601, in the local zone where it names none. Raises :class:`ValueError`."""
    try:
        found = datetime.fromisoformat(re.sub(r" (?:UTC|GMT)$", "+00:00", text.strip()))
    except ValueError:
        raise ValueError(f"{text[:40]!r} is not ISO 8601") from None
    return found if found.tzinfo else (moment(found) or found.replace(tzinfo=UTC)).astimezone()
