"""The breaker around calls that a memory waits for: those to SomaBrain and to an embedder."""

from __future__ import annotations

import time
from collections.abc import Callable

from context_builder.breaker import CallGuard, CircuitBreaker
from context_builder.errors import MemoryRejected, MemoryUnavailable


def guard_calls_to(
    name: str, breaker: CircuitBreaker | None = None, *, monotonic: Callable[[], float] = time.monotonic
) -> CallGuard:
    """Return a guard that raises :class:`MemoryUnavailable` in place of a call while ``name`` keeps failing.

    A refusal counts as an answer. A call that its caller cuts off counts as a failure: an answer too late is none.
    """

    def refusal(wait: float) -> MemoryUnavailable:
        return MemoryUnavailable(f"{name} keeps failing and is left alone for another {wait:.0f} s")

    def is_answer(error: BaseException) -> bool:
        return isinstance(error, MemoryRejected)

    return CallGuard(breaker or CircuitBreaker(), is_answer=is_answer, refusal=refusal, monotonic=monotonic)
