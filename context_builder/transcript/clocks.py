"""Times of the day as minutes have them in many languages become ``[9:02 AM]`` before what was said at them.

``09.02 Uhr Ida: …``, ``9 h 02 – Ida : …``, ``kl. 9.02 Ida: …``, ``a las 9:02``, ``0902 hrs``, and with the characters
for hour and minute. CLDR (https://cldr.unicode.org) and the languages' own style guides describe them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

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

_HEAD: Final = re.compile(r"[^\W\d_][^:\uff1a\n]{0,79}?\s?(?:[:\uff1a]|$)")
"""A name with a colon, or a line that may be one."""


def with_clocks(text: str) -> str:
    """Return a text whose lines begin with times of the day as English writes them; any other is as it was.

    Two lines at least begin with one, and names stand behind all of them, or they begin most of the lines.
    """
    lines = text.split("\n")
    behind = [_BEHIND.match(line[:100]) for line in lines]
    if sum(one is not None for one in behind) > 1:
        pairs = zip(lines, behind, strict=True)
        return "\n".join(
            f"{one['name']} ({_in_english(one)}){line[one.end() :]}" if one else line for line, one in pairs
        )
    found = {place: one for place, line in enumerate(lines) if (one := _first(line, _FORMS)) is not None}
    if len(found) < 2:
        found = {place: one for place, line in enumerate(lines) if (one := _first(line, (_POINT,))) is not None}
        if not _ascend([_minutes(one) for one in found.values()]):
            return text
    rests = {place: lines[place][one.end() :] for place, one in found.items()}
    headed = sum(not rest.strip() or bool(_HEAD.match(rest)) for rest in rests.values())
    told = sum(bool(line.strip()) for line in lines)
    is_point = any(one.re is _POINT for one in found.values())
    if len(found) < 2 or (headed < len(found) and (is_point or len(found) < told / 2)):
        return text
    for place, one in found.items():
        lines[place] = f"[{_in_english(one)}] {rests[place]}" if rests[place].strip() else _in_english(one)
    return "\n".join(lines)


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
