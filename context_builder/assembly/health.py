"""A memory's health is a state machine over the outcomes of its calls, with the time passed in.

========  ====================  ========  ========
state     event                 next      for
========  ====================  ========  ========
NORMAL    failure               DEGRADED  15 s
DEGRADED  success, or 15 s      NORMAL
DEGRADED  fifth failure         DOWN      60 s
DOWN      60 s                  DEGRADED  15 s
========  ====================  ========  ========

Failures count when no success came between them; each one in DEGRADED begins its 15 s anew. Calls that were under way
at the same time fail for the same reason, so those that began before the last failure do not count again: a burst of
turns that is too much for a memory is one failure.
"""

from __future__ import annotations

import math
from enum import StrEnum

from context_builder.breaker import BreakerState, CircuitBreaker


class HealthState(StrEnum):
    """Tells how much is asked of the memory: everything, little, or nothing."""

    NORMAL = "normal"
    DEGRADED = "degraded"
    DOWN = "down"


class Health:
    """Tracks a memory's health from outcomes; ``now`` is in seconds on a clock that never goes back.

    Every ``now`` is in seconds on a clock that never goes back.
    """

    def __init__(
        self, *, degraded_window: float = 15.0, down_window: float = 60.0, failures_until_down: int = 5
    ) -> None:
        self._breaker = CircuitBreaker(failures=failures_until_down, pause=down_window, half_open=False)
        self._degraded_window = degraded_window
        self._down_window = down_window
        self._degraded_until = -math.inf

    def state(self, now: float) -> HealthState:
        """Return the state at ``now``."""
        if self._breaker.state(now) is BreakerState.OPEN:
            return HealthState.DOWN
        return HealthState.DEGRADED if now < self._degraded_until else HealthState.NORMAL

    def succeeded(self, now: float) -> None:
        """Record a call that was answered; one that was under way when the memory went DOWN changes nothing."""
        if self.state(now) is not HealthState.DOWN:
            self._breaker.succeeded(now)
            self._degraded_until = -math.inf

    def recovered(self) -> None:
        """Be NORMAL: whoever looked without haste was answered as quickly as a turn wants it."""
        self._breaker.reset()
        self._degraded_until = -math.inf

    def failed(self, now: float, began: float = math.inf) -> float | None:
        """Record a failed call that began at ``began``; return for how many seconds less is asked, if it got worse.

        Return for how many seconds less will be asked, if the state got worse.
        """
        before = self.state(now)
        if not self._breaker.failed(now, began):
            return None
        if self.state(now) is HealthState.DOWN:
            self._degraded_until = now + self._down_window + self._degraded_window
            return self._down_window
        self._degraded_until = now + self._degraded_window
        return self._degraded_window if before is HealthState.NORMAL else None
