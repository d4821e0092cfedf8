"""Ctrl-C and SIGTERM as an orderly stop, within bounds."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import structlog


async def stopped(stop: asyncio.Event, within: float) -> bool:
    """Wait for ``stop``, at most ``within`` seconds, and return whether it is set."""
    try:
        async with asyncio.timeout(max(within, 0.0)):
            return await stop.wait()
    except TimeoutError:
        return stop.is_set()


GRACE: Final = 4.0
"""Seconds that an orderly stop may take; then what still runs is cut off. Nothing is lost by that."""


@contextmanager
def stopping_signals(stop: Callable[[], object]) -> Iterator[None]:
    """Call ``stop`` on Ctrl-C and SIGTERM; afterwards they do again what they did before."""
    loop = asyncio.get_running_loop()
    handled = (signal.SIGINT, signal.SIGTERM)
    for number in handled:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


async def within_grace(coroutine: Coroutine[Any, Any, None], told_to_stop: asyncio.Event) -> None:
    """Run the coroutine; once ``told_to_stop`` is set, for ``GRACE`` seconds at most."""
    task = asyncio.create_task(coroutine, name="session")
    stopping = asyncio.create_task(told_to_stop.wait(), name="told to stop")
    try:
        await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            await asyncio.wait({task}, timeout=GRACE)
        if not task.done():
            structlog.get_logger(__name__).warning("session.cut_off", after_seconds=GRACE)
            task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})  # which gives the session's lease back
        raise
    finally:
        stopping.cancel()
