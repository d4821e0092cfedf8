"""Time as a value that is passed in, so that logic never reads a clock."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import Protocol

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
