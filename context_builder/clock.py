"""Time is a value that is passed in, so that logic never reads a clock; timestamps are read in this one place.

A timestamp without an offset is local time, of the zone that the reading process is in (``TZ``): it is what listeners
write (``datetime.now().isoformat()``), what arrival times are published as, and what readers of the published state
compare with their own clocks. In the hour that a change of the clocks repeats, the reading nearer to the arrival is
meant, where that is known.
"""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Final, Protocol, cast

from context_builder.values import value


@value
class Instant:
    """One moment on both clocks, in seconds.

    ``wall`` (Unix epoch) is published; ``monotonic`` measures durations, because the wall
    clock may jump. ``offset`` is that of the local time to UTC where this was recorded; None, here.
    """

    wall: float
    monotonic: float
    offset: int | None = None

    @property
    def local_offset(self) -> int:
        """Return the seconds that local time is ahead of UTC at this moment."""
        return time.localtime(self.wall).tm_gmtoff if self.offset is None else self.offset

    def iso(self) -> str:
        """Return local time without an offset, the form listeners send."""
        zone = None if self.offset is None else timezone(timedelta(seconds=self.offset))
        return datetime.fromtimestamp(self.wall, zone).replace(tzinfo=None).isoformat()


class Clock(Protocol):
    """A clock returns the present moment."""

    def now(self) -> Instant: ...


class SystemClock:
    """Reads the machine's clocks."""

    def now(self) -> Instant:
        return Instant(time.time(), time.monotonic())


def ago(then: float, now: float) -> str:
    """Return how long before ``now`` an epoch second was, for people: ``5 min ago``."""
    seconds = max(0, int(now - then))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"


BEYOND_DOUBT: Final = 900.0
"""Seconds; clocks are changed by more, so where one reading is this near to the arrival the other is not nearer."""


def moment(value: object, *, near: float | None = None) -> datetime | None:
    """Return the moment, in UTC, of ISO 8601, a datetime or epoch seconds; None of anything else.

    ``near`` is when it arrived, in epoch seconds. At the edges of the calendar, where UTC may have another year, there
    is none.
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        if time.tzinfo is not None or near is None:
            return time.astimezone(UTC)
        readings = [time.replace(fold=fold).astimezone(UTC) for fold in (0, 1)]
        return min(readings, key=lambda reading: abs(reading.timestamp() - near))
    except (ValueError, OverflowError, OSError):
        return None


def in_utc(time: datetime) -> datetime:
    """Return the same moment in UTC, or the nearest in the calendar."""
    try:
        return time.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return (datetime.min if time.year == 1 else datetime.max).replace(tzinfo=UTC)


def day(time: datetime) -> str:
    """Return the date on the local calendar, for people to read."""
    with suppress(ValueError, OverflowError, OSError):
        time = time.astimezone()
    return time.date().isoformat()


def day_of(timestamp: object) -> date | None:
    """Return the date of a timestamp where it was written: by its own offset, else on the local calendar.

    A datetime in UTC is a moment alone, of which that is not known. None of what is not a timestamp.
    """
    if moment(timestamp) is None:
        return None
    written = datetime.fromisoformat(timestamp) if isinstance(timestamp, str) else timestamp
    if isinstance(written, datetime) and written.tzinfo is not UTC:
        return written.date()
    with suppress(ValueError, OverflowError, OSError):
        return cast("datetime", moment(timestamp)).astimezone().date()
    return None


def epoch(value: object, *, near: float | None = None) -> float | None:
    """Return the epoch seconds of :func:`moment`."""
    if near is not None and isinstance(value, datetime):  # of almost every message, which is said as it arrives
        try:
            if abs((time := value.timestamp()) - near) < BEYOND_DOUBT:
                return time
        except (ValueError, OverflowError, OSError):
            return None
    read = moment(value, near=near)
    return None if read is None else read.timestamp()


def with_offset(timestamp: str, *, near: float) -> str:
    """Return the timestamp with the local offset, where it has none, for readers in other time zones."""
    read = moment(timestamp, near=near)
    if read is None or datetime.fromisoformat(timestamp).tzinfo is not None:
        return timestamp
    return read.astimezone().isoformat()
