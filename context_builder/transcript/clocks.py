"""Times of the day as minutes have them in many languages become ``[9:02 AM]`` before what was said at them.

``09.02 Uhr Ida: …``, ``9 h 02 – Ida : …``, ``kl. 9.02 Ida: …``, ``a las 9:02``, ``0902 hrs``, and with the characters
for hour and minute. CLDR (https://cldr.unicode.org) and the languages' own style guides describe them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from context_builder.transcript.labels import is_written_as_name
from context_builder.transcript.offsets import since_first

_HOUR: Final = r"(?P<hour>[01]?\d|2[0-3])"
_MINUTE: Final = r"(?P<minute>[0-5]\d)"
_SECOND: Final = r"(?:[.:](?P<second>[0-5]\d))?"
_BEHIND_IT: Final = r"(?:Uhr|uur|hrs?\b\.?|hours|hodin|óra|h)(?!\w)"
_BEFORE_IT: Final = (
    r"(?:kl\.?|klo|klokken|klockan|um|gegen|à|às|as|a las|a la|alle(?: ore)?|ore|om|o godz\.|godz\.|at|в|о)\s?"
)
_AFTERNOONS: Final = ("午後", "下午", "오후")
_FORMS: Final = tuple(
    re.compile(rf"\s*[\[(]?{form}(?!:?\d)\s?[\])]?\s*(?:[-–—|:,.;•](?=\s)\s*)?", re.IGNORECASE)
    for form in (
        rf"(?:{_BEFORE_IT})?{_HOUR}\s?[.:h]?\s?{_MINUTE}{_SECOND}\s?{_BEHIND_IT}",
        rf"(?:{_BEFORE_IT})?{_HOUR}\s?h\s?{_MINUTE}(?:\s?min\b\.?|\s?m\b)?{_SECOND}",
        rf"{_BEFORE_IT}{_HOUR}[.:]{_MINUTE}{_SECOND}",
        rf"(?P<half>午[前後]|[上下]午|오[전후])?\s?{_HOUR}\s?[時时点點시]\s?(?:(?P<minute>[0-5]?\d)\s?[分분])?"
        r"(?:\s?(?P<second>[0-5]?\d)\s?[秒초])?",
    )
)
_BEHIND: Final = re.compile(
    rf"(?P<name>[^\s\[(:][^\[(:\n]{{0,60}}?)(?:(?:\s*,|\s[-–—|])\s+|\s*(?P<open>[\[(]))"
    rf"(?:{_BEFORE_IT})?{_HOUR}\s?[.:h]?\s?{_MINUTE}{_SECOND}\s?(?:{_BEHIND_IT}|(?<=h[0-5]\d)|(?<=h\s[0-5]\d))\s?"
    r"(?(open)[\])])(?=\s*:|\s*$)",
    re.IGNORECASE,
)
"""``Ida (9.02 Uhr): …`` and ``Ida, 9 h 02``."""

_POINT: Final = re.compile(rf"\s*[\[(]?{_HOUR}\.{_MINUTE}[\])]?\s+(?:[-–—|]\s+)?(?P<second>(?!))?", re.IGNORECASE)
"""``9.02 Ida: …``, which may be the number of a section, too."""

_LABEL: Final = re.compile(r"\s*(?P<name>[^\s:\uff1a\[][^:\uff1a\n]{0,79}?)\s?(?::(?=\s|$)|\uff1a)")
_DASHED: Final = re.compile(r"(?P<name>[^\s:\uff1a][^:\uff1a\n]{0,79}?)\s[-–—|]\s+\S")
_FIGURES: Final = re.compile(r"\s*(?:\d{1,2}:)?\d{1,3}:\d{2}(?:[.,]\d{1,6})?\s?(?:[AaPp]\.?[Mm]\.?)?\s*(?:[-–—|]\s*)?")
_BRACKETED: Final = re.compile(r"\s*[\[(]\d{1,3}:\d{2}")
_HEADING: Final = re.compile(
    r"\s*(?P<name>\S.{0,79}?)(?P<gap>\s{1,8}[\[(]?|[\[(])(?:\d{1,2}:)?\d{1,3}:\d{2}(?:\s?[AaPp]\.?[Mm]\.?)?[\])]?\s*:?\s*"
)
"""Lines with a time in figures before or behind a name, as other files have them."""

_SHARE_OF_OTHERS: Final = 0.5
"""Lines with a label of another kind, for each entry, that minutes may have."""

_SAID: Final = re.compile(r"[.?!…,;:\uff1a]\s*$|[:\uff1a]\s")
"""What no title has."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line with its time as English writes it, and the name beside it or in a label, with the line of that label."""

    line: str
    name: str
    labelled: int | None


def with_clocks(text: str) -> str:
    """Return a text whose lines begin with times of the day as English writes them; any other is as it was.

    Two lines at least have a time and the name of who speaks: in a label, or else some name comes again. Where a line
    without a time has a label or a time in figures, the times are part of what is said, and all is as it was; but
    minutes have labels of their own between, such as for what was decided: a few that name none of those who speak.
    """
    lines = text.split("\n")
    for forms in ((_BEHIND,), _FORMS, (_POINT,)):
        clocks = {place: clock for place, line in enumerate(lines) if (clock := _first(line, forms)) is not None}
        if len(clocks) < 2:
            continue
        found = {place: one for place, clock in clocks.items() if (one := _entry(lines, place, clock))}
        if forms[0] is _BEHIND and len(found) < 2:
            continue
        is_point = forms[0] is _POINT
        if is_point and not _ascend([_minutes(clocks[place]) for place in found]):
            return text
        if not _are_entries(lines, found, again=is_point):
            return text
        return "\n".join(found[place].line if place in found else line for place, line in enumerate(lines))
    return text


def _entry(lines: Sequence[str], place: int, clock: re.Match[str]) -> _Entry | None:
    """Return the entry that begins in a line with a time; None where no name stands beside it."""
    rest = lines[place][clock.end() :]
    below = next((at for at in range(place + 1, len(lines)) if lines[at].strip()), None)
    has_text = below is not None and _first(lines[below], (*_FORMS, _BEHIND)) is None
    time = _in_english(clock)
    if clock.re is _BEHIND:
        name, line = clock["name"], f"{clock['name']} ({time}){rest}"
        labelled = place if rest.strip() else None
        return _Entry(line, name, labelled) if _is_written(name) and (rest.strip() or has_text) else None
    if not rest.strip():
        label = _LABEL.match(lines[below]) if below is not None and has_text else None
        return _Entry(time, label["name"], below) if label and _is_written(label["name"]) else None
    line = f"[{time}] {rest}"
    if label := _LABEL.match(rest):
        return _Entry(line, label["name"], place) if _is_written(label["name"]) else None
    if clock.re is _POINT:
        return None
    if dashed := _DASHED.match(rest):
        return _Entry(line, dashed["name"], None) if _is_written(dashed["name"]) else None
    return _Entry(line, rest.strip(), None) if _is_written(rest.strip()) and has_text else None


def _is_written(name: str) -> bool:
    return is_written_as_name(name.replace(",", ""))


def _are_entries(lines: Sequence[str], found: Mapping[int, _Entry], *, again: bool) -> bool:
    """Return whether such lines are entries of minutes; some name comes ``again`` if it must, or has no label."""
    if len(found) < 2:
        return False
    names = {one.name for one in found.values()}
    have_labels = all(one.labelled is not None for one in found.values())
    if (again or not have_labels) and len(names) == len(found):
        return False
    first = min(found)
    gap = max((place + 1 for place in range(first) if not lines[place].strip()), default=0)
    if any(not have_labels or _SAID.search(line) for line in lines[gap:first]):
        return False
    told = {*found, *(one.labelled for one in found.values())} | (set(range(gap)) if have_labels else set())
    others = [line for place, line in enumerate(lines) if place not in told and _is_of_other(line)]
    return not others or (
        have_labels
        and len(names) < len(found)
        and len(others) <= len(found) * _SHARE_OF_OTHERS
        and all((label := _LABEL.match(line)) and label["name"] not in names for line in others)
    )


def _is_of_other(line: str) -> bool:
    """Return whether a line without such a time has a label, or a time in figures beside a name."""
    label = _LABEL.match(_FIGURES.sub("", line, count=1) if _FIGURES.match(line) else line)
    if label and (_is_written(label["name"]) or " " not in label["name"]):
        return True
    behind = _HEADING.fullmatch(line)
    return bool(_BRACKETED.match(line)) or bool(behind and (behind["gap"] != " " or _is_written(behind["name"])))


def _first(line: str, forms: Sequence[re.Pattern[str]]) -> re.Match[str] | None:
    return next((found for form in forms if (found := form.match(line[:60]))), None)


def _minutes(clock: re.Match[str]) -> int:
    """Return the minutes from midnight."""
    hour = int(clock["hour"])
    half = clock.groupdict().get("half")
    if half:
        hour = hour % 12 + (12 if half in _AFTERNOONS else 0)
    return hour * 60 + int(clock["minute"] or 0)


def _ascend(minutes: Sequence[int]) -> bool:
    since = since_first([one * 60.0 for one in minutes])
    return since == sorted(since)


def _in_english(clock: re.Match[str]) -> str:
    hour, minute = divmod(_minutes(clock), 60)
    second = f":{int(clock['second']):02}" if clock["second"] else ""
    return f"{hour % 12 or 12}:{minute:02}{second} {'AM' if hour < 12 else 'PM'}"
