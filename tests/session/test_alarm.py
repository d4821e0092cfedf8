"""An alarm that is put off again and again rings at the moment named last."""

from __future__ import annotations

import asyncio
from math import inf

from context_builder.session.alarm import Alarm


class Rings:
    """Counts the rings, and knows when the last one was."""

    def __init__(self) -> None:
        self.count = 0
        self.last = -inf
        self._rung = asyncio.Event()

    def __call__(self) -> None:
        self.count += 1
        self.last = asyncio.get_running_loop().time()
        self._rung.set()

    async def next(self) -> None:
        async with asyncio.timeout(5):
            await self._rung.wait()
        self._rung.clear()


async def after(seconds: float) -> None:
    """Return when another alarm has rung that was set after those under test."""
    rings = Rings()
    Alarm(rings).ring_in(seconds)
    await rings.next()


async def test_it_rings_once_at_the_moment_named_last() -> None:
    rings, now = Rings(), asyncio.get_running_loop().time()
    alarm = Alarm(rings)
    for seconds in (0.01, 0.02, 0.03, 0.05):
        alarm.ring_in(seconds)
    await rings.next()
    assert rings.last - now >= 0.05
    await after(0.05)
    assert rings.count == 1


async def test_it_rings_sooner_when_it_is_told_to() -> None:
    rings = Rings()
    alarm = Alarm(rings)
    alarm.ring_in(60)
    alarm.ring_in(0)
    await rings.next()
    alarm.ring_in(0)
    await rings.next()
    assert rings.count == 2


async def test_it_never_rings_after_an_infinite_time_or_when_it_is_silenced_or_cancelled() -> None:
    rings = Rings()
    alarm = Alarm(rings)
    alarm.ring_in(0.01)
    alarm.ring_in(inf)
    await after(0.02)
    alarm.ring_in(0.01)
    alarm.silence()
    await after(0.02)
    alarm.ring_in(0.01)
    alarm.cancel()
    await after(0.02)
    assert rings.count == 0
