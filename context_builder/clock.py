"""Time as a value that is passed in, so that logic never reads a clock."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Instant:
    """One moment on both clocks, in seconds.

    ``wall`` (Unix epoch) is published; ``monotonic`` measures durations, because the wall
    clock may jump.
    """

    wall: float
    monotonic: float

    def iso(self) -> str:
        """Local time without an offset, the form listeners send."""
        return datetime.fromtimestamp(self.wall).isoformat()


def in_utc(moment: datetime) -> datetime:
    """The same moment in UTC, or the nearest in the calendar; one without an offset is taken for UTC."""
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return (datetime.min if moment.year == 1 else datetime.max).replace(tzinfo=UTC)


class Clock(Protocol):
    """Tells the present moment."""

    def now(self) -> Instant: ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> Instant:
        return Instant(time.time(), time.monotonic())
