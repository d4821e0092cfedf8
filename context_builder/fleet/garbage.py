"""The garbage collector is set up so that its runs do not stop thousands of sessions.

Python's collector looks now and then through all that lives, which takes half a second for 2,000 sessions. Here
it looks through what is new, and through the rest seldom.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog

ALLOCATIONS: Final = 20_000
"""More objects made than freed before Python looks through the youngest by itself."""

SET_ASIDE_SECONDS: Final = 1.0
"""Time after which what is new is set aside, at most."""

NEW_OBJECTS: Final = 2_000
"""More new objects than this are set aside sooner: to look through those of a busy second takes 50 ms, in which no
session goes on."""

POLL_SECONDS: Final = 0.1

SHARE: Final = 0.01
"""What is new is looked through before it is set aside, as long as that takes no more of the time than this. Each look
also goes through all that is under way, and in a busy process looks then find nothing; what they would find waits for
the look at everything."""

COLLECT_SECONDS: Final = 900.0
"""Time between two looks at everything, for what has become garbage after it was set aside."""

log = structlog.get_logger(__name__)


async def collect_seldom() -> None:
    """Collect garbage in this process, for ever; afterwards it is collected as before."""
    with _thresholds():
        while True:
            gc.unfreeze()
            log.info("fleet.garbage_collected", objects=gc.collect())
            began = set_aside = look_again = time.perf_counter()
            while (now := time.perf_counter()) - began < COLLECT_SECONDS:
                if gc.get_count()[0] > NEW_OBJECTS or now - set_aside >= SET_ASIDE_SECONDS:
                    if now >= look_again:
                        look_again = now + _look() / SHARE
                    gc.freeze()
                    set_aside = now
                await asyncio.sleep(POLL_SECONDS)


def _look() -> float:
    """Look through what is new; return the processor seconds that it took."""
    began = time.thread_time()
    gc.collect(1)
    return time.thread_time() - began


@contextmanager
def _thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
