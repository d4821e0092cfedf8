"""Turns are fair between shares, and none is lost by who gives up waiting."""

from __future__ import annotations

import asyncio

from context_builder.concurrency import FairTurns, share
from tests.services.waiting import PATIENCE


class Workers:
    """Tasks that wait for their turns, and note who had one."""

    def __init__(self, places: int = 1, most: int | None = None) -> None:
        self.turns = FairTurns(places, most)
        self.worked: list[str] = []

    def start(self, tenant: str, name: str) -> asyncio.Task[None]:
        async def work() -> None:
            share.set(tenant)
            async with self.turns:
                self.worked.append(name)
                await asyncio.sleep(0)

        return asyncio.create_task(work())


async def test_a_share_with_many_waiting_leaves_every_second_turn_to_another() -> None:
    workers = Workers()
    await workers.turns.acquire()
    large = [workers.start("large", f"large-{number}") for number in range(5)]
    await asyncio.sleep(0)
    small = [workers.start("small", f"small-{number}") for number in range(2)]
    await asyncio.sleep(0)
    workers.turns.release()
    await asyncio.gather(*large, *small)
    assert workers.worked == ["large-0", "small-0", "large-1", "small-1", "large-2", "large-3", "large-4"]


async def test_who_gives_up_leaves_the_turn_to_others() -> None:
    workers = Workers()
    await workers.turns.acquire()
    first, second, third = (workers.start("lab", str(number)) for number in range(3))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    workers.turns.release()  # to the second, which is cancelled before it runs
    second.cancel()
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert workers.worked == ["2"]
    await asyncio.wait_for(workers.turns.acquire(), PATIENCE)


async def test_a_share_leaves_free_places_to_others_once_it_has_its_most() -> None:
    workers = Workers(places=2, most=1)
    share.set("large")
    async with workers.turns:
        waiting = [workers.start("large", "large"), workers.start("small", "small"), workers.start("other", "other")]
        await asyncio.gather(*waiting[1:])
        assert workers.worked == ["small", "other"]
    await asyncio.gather(*waiting)
    assert workers.worked[2:] == ["large"]


async def test_so_many_work_at_a_time_as_there_are_places() -> None:
    workers = Workers(places=3)
    async with workers.turns, workers.turns:
        tasks = [workers.start("lab", str(number)) for number in range(2)]
        await asyncio.sleep(0)
        assert workers.worked == ["0"]
        await asyncio.gather(*tasks)
    for _ in range(3):
        await asyncio.wait_for(workers.turns.acquire(), PATIENCE)
