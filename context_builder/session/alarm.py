"""An alarm wakes whoever waits, at a moment that is put off with everything that happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf


class Alarm:
    """Calls ``ring`` once, at the moment that was named last.

    What is put off again and again costs no timer each time: one that is early looks when it is really to ring.
    """

    __slots__ = ("_at", "_ring", "_timer", "_timer_at")

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._at = inf
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf

    def ring_in(self, seconds: float) -> None:
        """Ring after so many seconds from now instead of when it was to; never, after an infinite time."""
        self._at = asyncio.get_running_loop().time() + seconds
        if self._at < self._timer_at:
            self._set()

    def silence(self) -> None:
        """Do not ring until there is another moment."""
        self._at = inf

    def cancel(self) -> None:
        """Ring no more, and leave no timer behind."""
        self._at = self._timer_at = inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = self._at
        self._timer = asyncio.get_running_loop().call_at(self._at, self._look)

    def _look(self) -> None:
        self._timer, self._timer_at = None, inf
        if self._at == inf:
            return
        if asyncio.get_running_loop().time() < self._at:
            self._set()
            return
        self._at = inf
        self._ring()
