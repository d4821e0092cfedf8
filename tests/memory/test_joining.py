"""What many remember at about the same time is one call; nobody's fault is another's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from context_builder.errors import DatabaseRejected, DatabaseUnavailable
from context_builder.memory.joining import SMALL, JoiningMemory
from context_builder.memory.memory import Memory
from context_builder.testing import InMemoryStore
from tests.services.waiting import wait_until


class Store(InMemoryStore):
    """Notes calls, refuses memories that say so, and waits before it answers while ``open`` is not set."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[list[str]] = []
        self.is_there = True
        self.open = asyncio.Event()
        self.open.set()

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        self.calls.append([one.id for one in memories])
        await self.open.wait()
        if not self.is_there:
            raise DatabaseUnavailable("away")
        if any(one.text == "refused" for one in memories):
            raise DatabaseRejected("refused")
        await super().remember(tenant_id, memories)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[JoiningMemory]:
    memory = JoiningMemory(store)
    yield memory
    store.open.set()
    await memory.close()


def said(number: int, text: str = "We sample at noon") -> list[Memory]:
    return [Memory(f"m-{number}", text)]


async def test_calls_of_one_tenant_are_joined(store: Store, memory: JoiningMemory) -> None:
    await asyncio.gather(
        *(memory.remember("lab", said(number)) for number in range(5)), memory.remember("club", said(9))
    )
    assert sorted(store.calls, key=len) == [["m-9"], ["m-0", "m-1", "m-2", "m-3", "m-4"]]


async def test_what_is_refused_in_company_is_refused_alone(store: Store, memory: JoiningMemory) -> None:
    texts = ["We sample", "refused", "We count"]
    done = await asyncio.gather(
        *(memory.remember("lab", said(number, text)) for number, text in enumerate(texts)), return_exceptions=True
    )
    assert [type(one) for one in done] == [type(None), DatabaseRejected, type(None)]
    assert await memory.forget("lab", ids=["m-0", "m-1", "m-2"]) == 2


async def test_a_memory_that_is_away_fails_everybody_once(store: Store, memory: JoiningMemory) -> None:
    store.is_there = False
    done = await asyncio.gather(*(memory.remember("lab", said(n)) for n in range(3)), return_exceptions=True)
    assert [type(one) for one in done] == [DatabaseUnavailable] * 3
    assert len(store.calls) == 1
    store.is_there = True
    await memory.remember("lab", said(4))
    assert await memory.forget("lab", ids=["m-4"]) == 1


async def test_who_was_cancelled_in_time_is_not_remembered(store: Store, memory: JoiningMemory) -> None:
    leaving = asyncio.create_task(memory.remember("lab", said(1)))
    staying = asyncio.create_task(memory.remember("lab", said(2)))
    await asyncio.sleep(0)
    leaving.cancel()
    await staying
    assert store.calls == [["m-2"]]


async def test_to_forget_waits_for_what_is_under_way(store: Store, memory: JoiningMemory) -> None:
    store.open.clear()
    leaving = asyncio.create_task(memory.remember("lab", said(1)))
    await wait_until(lambda: store.calls, "it is under way")
    leaving.cancel()
    forgetting = asyncio.create_task(memory.forget("lab", ids=["m-1"]))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not forgetting.done()
    store.open.set()
    assert await forgetting == 1


async def test_no_call_has_the_same_memory_twice(store: Store, memory: JoiningMemory) -> None:
    await asyncio.gather(memory.remember("lab", said(1)), memory.remember("lab", said(1, "We count")))
    assert store.calls == [["m-1"], ["m-1"]]


async def test_who_has_much_goes_alone_and_at_once(store: Store, memory: JoiningMemory) -> None:
    many = [one for number in range(SMALL + 1) for one in said(number)]
    await asyncio.gather(memory.remember("lab", said(100)), memory.remember("lab", many))
    assert [len(call) for call in store.calls] == [SMALL + 1, 1]
