"""Waiting for something to become true, instead of sleeping and hoping."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

T = TypeVar("T")

PATIENCE: Final = 100.0
"""Seconds after which nothing is waited for any more: a machine may be busy, or stand still for a while."""


async def wait_until(
    predicate: Callable[[], T | Awaitable[T]], description: str, timeout: float = PATIENCE, poll: float = 0.01
) -> T:
    """The first truthy value of ``predicate`` (sync or async), asked every ``poll`` seconds.

    Fails with ``description`` and the last value after ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    while True:
        answer = predicate()
        value = await answer if inspect.isawaitable(answer) else answer
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:g} s in vain until {description}; last: {value!r}")
        await asyncio.sleep(poll)


async def seconds_until(predicate: Callable[[], object], description: str) -> float:
    """The seconds until ``predicate`` is true, of what must be quick once in a few times: machines may stand still."""
    began = time.monotonic()
    await wait_until(predicate, description)
    return time.monotonic() - began
