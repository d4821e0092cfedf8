"""A circuit breaker: what keeps failing is not asked for a while, then tried with a single call.

=========  ==========================  =========
state      event                       next
=========  ==========================  =========
CLOSED     ``failures`` in a row       OPEN
OPEN       ``pause`` seconds           HALF_OPEN
HALF_OPEN  its one trial is answered   CLOSED
HALF_OPEN  its one trial fails         OPEN
=========  ==========================  =========

:class:`CircuitBreaker` is the state machine; it reads no clock. ``admit(now)`` asks whether a call may begin;
``succeeded(now)``, ``failed(now, began)`` and ``abandoned(began)`` tell how it ended; ``state(now)`` and ``wait(now)``
look without changing anything. :class:`CallGuard` puts a breaker and a clock around calls.

The package has its own because the libraries (purgatory, pybreaker, aiobreaker) read the wall clock, and count each
call of a burst that fails together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

from context_builder.errors import DatabaseRejected, DatabaseUnavailable


class BreakerState(StrEnum):
    """Whether a breaker lets calls through, refuses them, or lets through a single one as a trial."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class CircuitBreaker:
    """Counts failures in a row and opens after ``failures`` of them for ``pause`` seconds.

    Calls that overlap fail for the same reason: one that began before the last failure does not count again. Calls
    that end while it is open change nothing. Every ``now`` is in seconds on a clock that never goes back.
    """

    def __init__(self, *, failures: int = 3, pause: float = 15.0) -> None:
        self._limit = failures
        self._pause = pause
        self._failures = 0
        self._failed_at = -math.inf
        self._open_until: float | None = None
        self._trial_began: float | None = None

    def state(self, now: float) -> BreakerState:
        """Return the state at ``now``."""
        if self._open_until is None:
            return BreakerState.CLOSED
        if now < self._open_until:
            return BreakerState.OPEN
        return BreakerState.HALF_OPEN

    def wait(self, now: float) -> float:
        """Return the seconds until OPEN ends; 0.0 in any other state."""
        return 0.0 if self._open_until is None else max(self._open_until - now, 0.0)

    def admits(self, now: float) -> bool:
        """Return whether a call that began at ``now`` would be let through."""
        state = self.state(now)
        return state is BreakerState.CLOSED or (state is BreakerState.HALF_OPEN and self._trial_began is None)

    def admit(self, now: float) -> bool:
        """Return whether a call may begin at ``now``; in HALF_OPEN it is the trial, and the next has to wait for it."""
        if not self.admits(now):
            return False
        if self.state(now) is BreakerState.HALF_OPEN:
            self._trial_began = now
        return True

    def succeeded(self, now: float) -> None:
        """Close the breaker, since a call was answered; while OPEN nothing changes."""
        if self.state(now) is not BreakerState.OPEN:
            self._failures, self._open_until, self._trial_began = 0, None, None

    def failed(self, now: float, began: float = math.inf) -> bool:
        """Count a call that began at ``began`` as failed; return whether it counts."""
        if self.state(now) is BreakerState.OPEN or began < self._failed_at:
            return False
        self._failed_at = now
        self._failures += 1
        if self._failures >= self._limit:
            self._open_until, self._trial_began = now + self._pause, None
        return True

    def abandoned(self, began: float) -> None:
        """Let another call be the trial, if the one that began at ``began`` was it and ended without an outcome."""
        if began == self._trial_began:
            self._trial_began = None


class CallGuard:
    """Lets calls through a breaker and learns from how they end.

    ``is_answer`` judges the exception that a call ends with: True counts as an answer, False as a failure, None as
    neither. ``refusal`` makes the exception to raise in place of a call, of the seconds until the next trial.
    """

    def __init__(
        self,
        breaker: CircuitBreaker,
        *,
        is_answer: Callable[[BaseException], bool | None],
        refusal: Callable[[float], Exception],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._breaker = breaker
        self._is_answer = is_answer
        self._refusal = refusal
        self._monotonic = monotonic

    @property
    def refuses(self) -> bool:
        """Return whether a call would be refused now."""
        return not self._breaker.admits(self._monotonic())

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Let one call through; raises ``refusal`` in its place while the breaker does not admit it."""
        began = self._monotonic()
        if not self._breaker.admit(began):
            raise self._refusal(self._breaker.wait(began))
        try:
            yield
        except BaseException as error:  # being cut off is an outcome, too; nothing is swallowed
            self._learn(began, answered=self._is_answer(error))
            raise
        self._learn(began, answered=True)

    def _learn(self, began: float, *, answered: bool | None) -> None:
        if answered is None:
            self._breaker.abandoned(began)
        elif answered:
            self._breaker.succeeded(self._monotonic())
        else:
            self._breaker.failed(self._monotonic(), began)


def guard_calls_to(
    name: str, breaker: CircuitBreaker | None = None, *, monotonic: Callable[[], float] = time.monotonic
) -> CallGuard:
    """Return a guard that raises :class:`DatabaseUnavailable` in place of a call while ``name`` keeps failing.

    A refusal counts as an answer. A call that its caller cuts off counts as a failure: an answer too late is none.
    """

    def refusal(wait: float) -> DatabaseUnavailable:
        return DatabaseUnavailable(f"{name} keeps failing and is left alone for another {wait:.0f} s")

    def is_answer(error: BaseException) -> bool:
        return isinstance(error, DatabaseRejected)

    return CallGuard(breaker or CircuitBreaker(), is_answer=is_answer, refusal=refusal, monotonic=monotonic)
