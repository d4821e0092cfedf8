"""The filter of a search, from the names, days and kinds that people write."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from context_builder.clock import in_utc
from context_builder.errors import FilterInvalid
from context_builder.memory.memory import MemoryFilter

LONGEST_NAME: Final = 500
"""Characters of a speaker's, a session's or a kind's name."""


def memory_filter(
    *,
    speaker: str = "",
    session: str = "",
    since: str = "",
    until: str = "",
    kinds: Sequence[str] = (),
    tags: Sequence[str] = (),
) -> MemoryFilter:
    """Return the filter of a search; what is empty does not restrict it.

    ``since`` and ``until`` are days in UTC, of which the last is searched too, or moments in ISO 8601. Raises
    :class:`~context_builder.errors.FilterInvalid`, which says which cannot be used.
    """
    named = (
        ("speaker", speaker),
        ("session", session),
        *(("kind", kind) for kind in kinds),
        *(("tag", tag) for tag in tags),
    )
    for name, value in named:
        if len(value) > LONGEST_NAME:
            raise FilterInvalid(f"{name} is longer than {LONGEST_NAME} characters")
    first, last = _moment("since", since, days=0), _moment("until", until, days=1)
    if first is not None and last is not None and last <= first:
        raise FilterInvalid("the first day is after the last one")
    return MemoryFilter(
        session_id=session or None,
        kinds=tuple(filter(None, kinds)),
        tags=tuple(tags),
        since=first,
        until=last,
        speaker=speaker or None,
    )


def _moment(name: str, text: str, days: int) -> datetime | None:
    """Return the moment that a text names: of a day, its beginning, or that of so many days later."""
    if not text:
        return None
    try:
        if len(text) == len("2026-03-02"):
            day = datetime.combine(date.fromisoformat(text), time.min, UTC)
            return day.replace(year=min(day.year, 8_000)) + timedelta(days=days)  # a leap year, and a day after it
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise FilterInvalid(
            f"{name} must be a date or a time, such as 2026-03-02 or 2026-03-02T14:30:00+01:00"
        ) from None
    return in_utc(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))
