"""What keeps failing is left alone for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from context_builder.errors import MemoryRejected, MemoryUnavailable


class Breaker:
    """After ``failures`` calls in a row without an answer, calls are refused for ``pause`` seconds.

    A refusal is an answer; a call that its caller cuts off has none: an answer too late is none. ``monotonic`` tells
    seconds on a clock that never goes back.
    """

    def __init__(
        self, name: str, *, failures: int = 3, pause: float = 15.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._limit = failures
        self._pause = pause
        self._monotonic = monotonic
        self._failures = 0
        self._open_until: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether a call would be refused now."""
        return self._open_until is not None and self._monotonic() < self._open_until

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Let one call through and learn from it; raises :class:`MemoryUnavailable` in its place while open."""
        if self.is_open:
            wait = (self._open_until or 0.0) - self._monotonic()
            raise MemoryUnavailable(f"{self._name} keeps failing and is left alone for another {wait:.0f} s")
        answered = False
        try:
            yield
            answered = True
        except MemoryRejected:
            answered = True
            raise
        finally:
            self._failures = 0 if answered else self._failures + 1
            is_failing = self._failures >= self._limit
            self._open_until = self._monotonic() + self._pause if is_failing else None
