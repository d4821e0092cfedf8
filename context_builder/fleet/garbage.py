"""The garbage collector is set up so that its runs do not stop thousands of sessions.

Python's collector looks now and then through all that lives, which takes half a second for 2,000 sessions. Here
it looks through what is new, and through the rest seldom.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

ALLOCATIONS: Final = 20_000
"""More objects made than freed before the youngest are looked through."""

SET_ASIDE_SECONDS: Final = 1.0
"""Time between two looks at what is new, at most; what lives on is set aside."""

NEW_OBJECTS: Final = 2_000
"""More new objects than this are looked through sooner: those of a busy second take 50 ms, in which no session goes
on."""

POLL_SECONDS: Final = 0.1

COLLECT_SECONDS: Final = 900.0
"""Time between two looks at everything, for what has become garbage after it was set aside."""


async def collect_seldom() -> None:
    """Collect garbage in this process, for ever; afterwards it is collected as before."""
    loop = asyncio.get_running_loop()
    with _thresholds():
        while True:
            gc.unfreeze()
            gc.collect()
            began, looked = loop.time(), float("-inf")
            while loop.time() - began < COLLECT_SECONDS:
                if gc.get_count()[0] > NEW_OBJECTS or loop.time() - looked >= SET_ASIDE_SECONDS:
                    looked = loop.time()
                    gc.collect(1)
                    gc.freeze()
                await asyncio.sleep(POLL_SECONDS)


@contextmanager
def _thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
