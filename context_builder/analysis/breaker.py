"""A circuit breaker: a model that keeps failing is left alone for a while.

Ours rather than a library's because it must measure on the monotonic clock, let one single trial
through, and take a cancelled call for neither success nor failure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from context_builder.errors import AnalystError, AnalystUnavailable, OverBudget


class BreakerOpen(AnalystUnavailable):
    """The model was not asked, because it keeps failing."""


class Breaker:
    """Closed, calls pass; after ``failures`` in a row it is open for ``pause`` seconds; then one
    call is let through as a trial, whose outcome closes it or opens it again.

    ``now`` tells seconds on a clock that never goes back.
    """

    def __init__(self, *, failures: int = 3, pause: float = 15.0, now: Callable[[], float] = time.monotonic) -> None:
        self._limit = failures
        self._pause = pause
        self._now = now
        self._failures = 0
        self._open_until: float | None = None
        self._trial = False

    @property
    def is_open(self) -> bool:
        """Whether the model counts as failing: calls are refused, but for the trial."""
        return self._open_until is not None

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Let one call through and learn from it.

        Raises :class:`BreakerOpen` in its place while open, with the seconds until the next trial.
        """
        trial = self._admit()
        try:
            yield
        except OverBudget:
            raise  # says nothing about the model, which was not asked
        except AnalystError:
            self._failed()
            raise
        else:
            self._failures, self._open_until = 0, None
        finally:
            if trial:
                self._trial = False

    def _admit(self) -> bool:
        """Whether the call that is let through is the trial."""
        if self._open_until is None:
            return False
        wait = self._open_until - self._now()
        if wait > 0 or self._trial:
            raise BreakerOpen("the model keeps failing and is left alone for now", retry_after=max(wait, 0.0))
        self._trial = True
        return True

    def _failed(self) -> None:
        self._failures += 1
        if self._failures >= self._limit:
            self._open_until = self._now() + self._pause
