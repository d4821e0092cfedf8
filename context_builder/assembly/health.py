"""How well the memory answers: a state machine over outcomes, with the time passed in.

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


class HealthState(StrEnum):
    """How much is asked of the memory: everything, little, or nothing."""

    NORMAL = "normal"
    DEGRADED = "degraded"
    DOWN = "down"


class Health:
    """The machine; ``now`` is in seconds on a clock that never goes back."""

    def __init__(
        self, *, degraded_window: float = 15.0, down_window: float = 60.0, failures_until_down: int = 5
    ) -> None:
        self._degraded_window = degraded_window
        self._down_window = down_window
        self._failures_until_down = failures_until_down
        self._failures = 0
        self._state = HealthState.NORMAL
        self._until = 0.0
        self._failed_at = -math.inf

    def state(self, now: float) -> HealthState:
        """The state at ``now``."""
        if self._state is HealthState.DOWN and now >= self._until:
            self._failures = 0
            self._enter(HealthState.DEGRADED, self._until + self._degraded_window)
        if self._state is HealthState.DEGRADED and now >= self._until:
            self._state = HealthState.NORMAL
        return self._state

    def succeeded(self, now: float) -> None:
        """A call was answered; one that was under way when the memory went DOWN changes nothing."""
        if self.state(now) is not HealthState.DOWN:
            self._failures = 0
            self._state = HealthState.NORMAL

    def failed(self, now: float, began: float = math.inf) -> float | None:
        """A call that began at ``began`` failed or was cut off; for how many seconds less will be asked, if it got
        worse."""
        before = self.state(now)
        if before is HealthState.DOWN or began < self._failed_at:
            return None
        self._failed_at = now
        self._failures += 1
        if self._failures >= self._failures_until_down:
            self._enter(HealthState.DOWN, now + self._down_window)
            return self._down_window
        self._enter(HealthState.DEGRADED, now + self._degraded_window)
        return self._degraded_window if before is HealthState.NORMAL else None

    def _enter(self, state: HealthState, until: float) -> None:
        self._state, self._until = state, until
