"""An alarm calls a function at a moment that may be moved again and again, without a new timer each time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf


class Alarm:
    """Calls ``ring`` once, at the moment that was named last.

    Most moves put the moment off. The timer that is set then stays: when it fires too early, it is set again for the
    rest of the time. Only a move to an earlier moment replaces it.
    """

    __slots__ = ("_at", "_ring", "_timer", "_timer_at")

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._at = inf  # when to ring
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf  # when the timer fires, at ``_at`` or before

    def ring_in(self, seconds: float) -> None:
        """Ring ``seconds`` from now, and not at the moment named before; an infinite time means never."""
        self._at = asyncio.get_running_loop().time() + seconds
        if self._at < self._timer_at:
            self._set_timer()

    def silence(self) -> None:
        """Do not ring until another moment is named."""
        self._at = inf

    def cancel(self) -> None:
        """Do not ring any more, and leave no timer behind."""
        self._at = self._timer_at = inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = self._at
        self._timer = asyncio.get_running_loop().call_at(self._at, self._fired)

    def _fired(self) -> None:
        self._timer, self._timer_at = None, inf
        if self._at == inf:  # silenced
            return
        if asyncio.get_running_loop().time() < self._at:  # put off meanwhile
            self._set_timer()
            return
        self._at = inf
        self._ring()
