"""Trying again for as long as something stays unavailable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import stamina

from context_builder.errors import StoreUnavailable


def until_available(
    on: type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], bool] = StoreUnavailable,
    *,
    longest_wait: float = 0.5,
) -> AsyncIterator[Any]:
    """Attempts without end, with exponential backoff and jitter, at most ``longest_wait`` seconds apart.

    ``on`` says which errors are worth another attempt.
    """
    return stamina.retry_context(
        on=on,
        attempts=None,
        timeout=None,
        wait_initial=0.05,
        wait_max=longest_wait,
        wait_jitter=0.05,
    ).__aiter__()
