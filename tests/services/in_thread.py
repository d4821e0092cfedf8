"""What is asynchronous, for those who are not, or who have no loop that may wait."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


def in_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result, from a loop of its own, also where one is running."""
    results: list[T] = []
    thread = Thread(target=lambda: results.append(asyncio.run(coroutine)))
    thread.start()
    thread.join()
    return results[0]
