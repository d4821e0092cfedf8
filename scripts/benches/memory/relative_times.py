"""When a text's relative time expressions are, in the words of a date: "yesterday" said on 8 May is "7 May 2023"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

_NUMBERS: Final = ("a", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAYS: Final = {"day": 1, "week": 7, "month": 30.44, "year": 365.25}
_EXPRESSION: Final = re.compile(
    rf"""\b(?:
        (?P<day>yesterday | tomorrow | last\s+night)
      | (?P<which>last | next | this)\s+(?P<unit>week|weekend|month|year|summer|{"|".join(_WEEKDAYS)})
      | (?P<count>{"|".join(_NUMBERS)}|a\s+few|\d{{1,2}})\s+(?P<each>day|week|month|year)s?\s+ago
    )\b""",
    re.VERBOSE,
)


def when(text: str, said_at: datetime) -> str:
    """The dates that ``text``, said then, speaks of: days where it names days, else months or years."""
    return " ".join(dict.fromkeys(_dates(text.lower(), said_at)))


def _dates(text: str, said_at: datetime) -> Iterator[str]:
    for match in _EXPRESSION.finditer(text):
        if match["day"]:
            yield _day(said_at + timedelta(1 if match["day"] == "tomorrow" else -1))
        elif match["each"]:
            number = match["count"]
            count = int(number) if number.isdigit() else 3 if number not in _NUMBERS else max(_NUMBERS.index(number), 1)
            yield _of(said_at - timedelta(count * _DAYS[match["each"]]), match["each"])
        else:
            yield _named(match["which"], match["unit"], said_at)


def _named(which: str, unit: str, said_at: datetime) -> str:
    direction = {"last": -1, "this": 0, "next": 1}[which]
    if unit in _WEEKDAYS:
        ahead = (_WEEKDAYS.index(unit) - said_at.weekday()) % 7 or 7
        return _day(said_at + timedelta(ahead - 7 if direction < 0 else ahead))
    days = _DAYS.get("year" if unit == "summer" else unit, 7)
    return _of(said_at + timedelta(direction * days), unit)


def _of(moment: datetime, unit: str) -> str:
    if unit == "day":
        return _day(moment)
    return f"{moment:%Y}" if unit in ("year", "summer") else f"{moment:%B %Y}"


def _day(moment: datetime) -> str:
    return f"{moment.day} {moment:%B %Y}"
