"""Garbage is collected without looking through all that lives."""

from __future__ import annotations

import asyncio
import gc
import weakref

from context_builder.fleet.garbage import collect_seldom
from tests.services.waiting import wait_until


class Ring:
    """Refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.itself = self


async def test_what_lives_is_set_aside_and_what_died_is_freed() -> None:
    before = gc.get_threshold()
    collecting = asyncio.create_task(collect_seldom())
    await wait_until(gc.get_freeze_count, "what lives is set aside")
    ring = weakref.ref(Ring())
    await wait_until(lambda: ring() is None, "a ring that is younger is freed")
    collecting.cancel()
    await asyncio.wait([collecting])
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
