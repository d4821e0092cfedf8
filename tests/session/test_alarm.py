"""An alarm that is put off again and again rings at the moment named last."""

from __future__ import annotations

import asyncio
from math import inf

from context_builder.session.alarm import Alarm


class Rung:
    def __init__(self) -> None:
        self.at: list[float] = []

    def __call__(self) -> None:
        self.at.append(asyncio.get_running_loop().time())


async def test_it_rings_once_at_the_moment_named_last() -> None:
    rung, now = Rung(), asyncio.get_running_loop().time()
    alarm = Alarm(rung)
    for seconds in (0.01, 0.02, 0.03, 0.05):
        alarm.ring_in(seconds)
    await asyncio.sleep(0.15)
    assert len(rung.at) == 1
    assert rung.at[0] - now >= 0.05


async def test_it_rings_sooner_when_it_is_told_to() -> None:
    rung = Rung()
    alarm = Alarm(rung)
    alarm.ring_in(60)
    alarm.ring_in(0)
    await asyncio.sleep(0.01)
    assert len(rung.at) == 1
    alarm.ring_in(0)
    await asyncio.sleep(0.01)
    assert len(rung.at) == 2


async def test_it_never_rings_after_an_infinite_time_or_when_it_is_silenced_or_cancelled() -> None:
    rung = Rung()
    alarm = Alarm(rung)
    alarm.ring_in(0.01)
    alarm.ring_in(inf)
    await asyncio.sleep(0.03)
    alarm.ring_in(0.01)
    alarm.silence()
    await asyncio.sleep(0.03)
    alarm.ring_in(0.01)
    alarm.cancel()
    await asyncio.sleep(0.03)
    assert rung.at == []
