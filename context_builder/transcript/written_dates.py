"""Dates and times of day as phones and chat programs write them beside messages, in the order that the region has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

DATE: Final = r"\d{1,4}[./\-\u5e74\ub144]\s?\d{1,2}[./\-\u6708\uc6d4]\s?\d{1,4}[.\u65e5\uc77c]?"
_MORNINGS: Final = (
    r"a\.?\s?m\.?", r"vorm\.", r"π\.?μ\.?", "上午", "凌晨", "早上", "清晨",
    "午前", "오전", "de la mañana", "da manhã", "صباحًا", "ص", "SA", "पूर्वाह्न",
    "म.पू.", r"de\.", "e paradites", r"ق\.ظ\.?", "قبل‌ازظهر", "ÖÖ", "முற்பகல்", r"ap\.", "PG",
    "לפנה״צ", 'לפנה"צ', r"dop\.", r"пр\.об\.", "дп", "fm",
    "priešpiet", r"priekšp\.", "ก่อนเที่ยง",
)  # fmt: skip
_AFTERNOONS: Final = (
    r"p\.?\s?m\.?", r"nachm\.", r"μ\.?μ\.?", "下午", "晚上", "中午",
    "傍晚", "午後",
    "오후", "de la tarde", "de la noche", "da tarde", "da noite", "مساءً", "م",
    "CH", "अपराह्न", "म.उ.", r"du\.", "e pasdites", r"ب\.ظ\.?", "بعدازظهر",
    "ÖS", "பிற்பகல்", r"ip\.", "PTG", "אחה״צ", 'אחה"צ', r"odp\.", r"pop\.",
    r"сл\.об\.", "пп", "em", "popiet", r"pēcp\.", "หลังเที่ยง",
)  # fmt: skip
"""As phones write them in the languages of https://cldr.unicode.org."""

HALF: Final = rf"(?:{'|'.join((*_MORNINGS, *_AFTERNOONS))})"
_AFTERNOON: Final = re.compile("|".join(_AFTERNOONS), re.IGNORECASE)
_STAMP: Final = re.compile(
    rf"(?P<date>{DATE})|(?:(?P<before>{HALF})\s?)?(?P<time>\d{{1,2}}[:.]\d{{2}}(?:[:.]\d{{2}})?)(?:\s?(?P<after>{HALF})(?!\w))?",
    re.IGNORECASE,
)
_YEAR: Final = re.compile(r"\b\d{4}\b|\b\d{1,2}-[^\W\d_]{3,4}\.?-\d\d\b")
_LONGEST: Final = 120
"""Characters of a date, with the day of the week, the time and the zone."""
_MOST_FAILURES: Final = 20
_NAMED_MONTH: Final = re.compile(r"[^\W\d_]{3,}\.?,?[\s-]+\d{1,2}|\d{1,2}\.?[\s-]+[^\W\d_]{3,}")


@dataclass(frozen=True, slots=True)
class WrittenDate:
    """A date or a moment as it is written: the date, whose parts are in any order, and the time of day."""

    date: str
    time: str = ""
    half: str = ""

    @property
    def parts(self) -> list[int]:
        """Return the numbers of the date."""
        return [int(one) for one in re.findall(r"\d+", self.date)]


def written(text: str) -> WrittenDate | None:
    """Return the date and the time of day that a text is, in either order; None where it has not both."""
    date = time = half = ""
    for found in _STAMP.finditer(text):
        if found["date"]:
            date = date or found["date"]
        elif not time:
            time, half = found["time"], found["before"] or found["after"] or ""
    if time and not date and _NAMED_MONTH.search(text) and _YEAR.search(text):
        date = text
    return WrittenDate(date, time, half) if date and time else None


def order_of(dates: Sequence[WrittenDate]) -> str:
    """Return the order of day, month and year that all dates allow; where several do, the likelier."""
    numbers = [parts for one in dates if len(parts := one.parts) == 3]
    if any(parts[0] > 31 for parts in numbers):
        return "ymd"
    days_first = all(parts[1] <= 12 for parts in numbers)
    months_first = all(parts[0] <= 12 for parts in numbers)
    if days_first != months_first:
        return "dmy" if days_first else "mdy"
    for order in ("dmy", "mdy"):
        other = "mdy" if order == "dmy" else "dmy"
        if _ascends(numbers, order) and not _ascends(numbers, other):
            return order
    is_american = any(one.half and "/" in one.date and not one.half.startswith(("a.", "p.")) for one in dates)
    has_long_year = any(len(re.findall(r"\d+", one.date)[-1]) == 4 for one in dates)
    is_of_browser = any(one.half in ("AM", "PM") and one.time.count(":") == 2 for one in dates) and any(
        re.match(r"[1-9]\D|\d\d?\D[1-9]\D", one.date) for one in dates
    )
    return "mdy" if is_american and (is_of_browser or not has_long_year) else "dmy"


def _ascends(dates: Sequence[Sequence[int]], order: str) -> bool:
    keys = [tuple(parts[order.index(one)] for one in "ymd") for parts in dates]
    return keys == sorted(keys)


def moment_of(written: WrittenDate, order: str) -> datetime:
    """Return a moment in the local zone. Raises :class:`ValueError`."""
    if re.search(r"[A-Za-z]{3}", written.date):
        return _named(written.date)
    if len(written.parts) != 3:
        raise ValueError(f"{written.date!r} is not a date")
    year, month, day = (written.parts[order.index(one)] for one in "ymd")
    if year > 2400:  # of the Buddhist calendar
        year -= 543
    hour, minute, *second = (int(one) for one in re.findall(r"\d+", written.time))
    if written.half:
        hour = hour % 12 + (12 if _AFTERNOON.fullmatch(written.half) else 0)
    year = year + 2000 if year < 100 else year
    return datetime(year, month, day, hour, minute, second[0] if second else 0).astimezone()


@dataclass(slots=True)
class _Shape:
    """How often texts that differ in their numbers alone were no date, and whether one was."""

    failures: int = 0
    is_date: bool = False


@lru_cache(maxsize=256)
def _shape(text: str) -> _Shape:
    return _Shape()


def _usual(number: re.Match[str]) -> str:
    """Return a number of as many digits that any date or time may have in its place."""
    return {1: "1", 2: "01", 4: "2001"}.get(len(number[0]), number[0])


@lru_cache(maxsize=1_024)  # a program writes the same minute beside many messages
def named_date(text: str, **settings: Any) -> datetime | None:
    """Return the moment of a date in words and numbers; None for another text, or one longer than any date is.

    Every language's dates are tried, which takes a fraction of a second, and of long texts minutes: of texts that
    differ in their numbers alone a few, where none is a date.
    """
    import dateparser

    if len(text) > _LONGEST or not any(map(str.isdigit, text)):
        return None
    shape = _shape(re.sub(r"\d+", "0", text))
    if shape.failures >= _MOST_FAILURES and not shape.is_date:
        return None

    def parsed(written: str) -> datetime | None:
        try:
            found: datetime | None = dateparser.parse(
                written, settings={"REQUIRE_PARTS": ["day", "month", "year"], **settings}
            )
        except OverflowError:
            return None
        return found

    found = parsed(text)
    shape.failures += found is None
    shape.is_date |= found is not None
    if shape.failures == _MOST_FAILURES and not shape.is_date:  # by impossible days, perhaps, as of another file
        shape.is_date = parsed(re.sub(r"\d+", _usual, text)) is not None
    return found


def _named(text: str) -> datetime:
    """Return the moment of a date with the name of its month."""
    cleaned = re.sub(r"\bat\b|[•·]", " ", " ".join(text.split()))
    found = named_date(cleaned)
    if found is None:
        raise ValueError(f"{text[:40]!r} is not a date")
    return found if found.tzinfo else found.astimezone()
