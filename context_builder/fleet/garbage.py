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

ALLOCATIONS: Final = 20_000
"""More objects made than freed before Python looks through the youngest by itself."""

SET_ASIDE_SECONDS: Final = 1.0
"""Time between two looks at what is new, at most; what lives on is set aside."""

NEW_OBJECTS: Final = 2_000
"""More new objects than this are set aside sooner: to look through those of a busy second takes 50 ms, in which no
session goes on."""

POLL_SECONDS: Final = 0.1

SHARE: Final = 0.02
"""Looks take no more of the time than this. A process so busy that they would sets aside what is new unseen, until the
look at everything: each look also goes through all that is under way, and next to nothing here becomes garbage that
only a look finds."""

COLLECT_SECONDS: Final = 900.0
"""Time between two looks at everything, for what has become garbage after it was set aside."""


async def collect_seldom() -> None:
    """Collect garbage in this process, for ever; afterwards it is collected as before."""
    with _thresholds():
        while True:
            gc.unfreeze()
            gc.collect()
            began = set_aside = look_again = time.perf_counter()
            while (now := time.perf_counter()) - began < COLLECT_SECONDS:
                if gc.get_count()[0] > NEW_OBJECTS or now - set_aside >= SET_ASIDE_SECONDS:
                    if now >= look_again:
                        gc.collect(1)
                        look_again = now + (time.perf_counter() - now) / SHARE
                    gc.freeze()
                    set_aside = now
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
