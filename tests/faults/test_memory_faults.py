"""The long-term memory fails: what was summarized waits in Redis and arrives once; the archive does not wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from context_builder.errors import CannotForget, DatabaseUnavailable
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.session.keys import Keys
from context_builder.testing import InMemoryStore
from tests.services.waiting import wait_until
from tests.session.live import TENANT, Live
from tests.session.saying import spoken

pytestmark = pytest.mark.engines

KEYS = Keys("monday")


class HangingMemory(InMemoryStore):
    """Keeps what it is given, and never answers."""

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        await super().remember(tenant_id, memories)
        await asyncio.Event().wait()


class UnforgettingMemory(InMemoryStore):
    """Has no way to delete."""

    async def forget(self, tenant_id: str, *, ids: Sequence[str] = (), filter: MemoryFilter | None = None) -> int:  # noqa: A002
        raise CannotForget("nothing is ever deleted here")


@pytest.fixture
def memory(live: Live) -> InMemoryStore:
    live.memory = InMemoryStore()
    return live.memory


async def summarize(live: Live, number: int, text: str = "Helicase unwinds the double helix") -> None:
    """Say one message, and let it be summarized."""
    await live.push(spoken(number, text))
    await live.shows(number)
    live.clock.advance(121)
    await live.until(f"message {number} is summarized", message_count=number)


def messages(memory: InMemoryStore) -> list[int]:
    kept = memory.kept.get(TENANT, {}).values()
    return [one.metadata["message_number"] for one in kept if one.kind == "message"]


async def test_without_memory_nothing_is_lost_and_the_archive_does_not_wait(live: Live, memory: InMemoryStore) -> None:
    memory.failure = DatabaseUnavailable("away")
    session = await live.start()
    for number in (1, 2, 3):
        await summarize(live, number)
    await wait_until(lambda: len(live.archive.rows) == 3, "everything is archived")
    await live.stop(session)
    assert (await live.redis.llen(KEYS.memory_outbox), await live.redis.ttl(KEYS.memory_outbox)) == (3, -1)
    assert memory.kept == {}
    memory.failure = None
    await live.start()
    await wait_until(lambda: messages(memory) == [1, 2, 3], "everything is remembered, in order")
    await wait_until(lambda: live.lacks(KEYS.memory_outbox), "nothing waits any more")


async def test_without_archive_the_memory_does_not_wait(live: Live, memory: InMemoryStore) -> None:
    live.archive.failure = DatabaseUnavailable("away")
    await live.start()
    await summarize(live, 1)
    await wait_until(lambda: messages(memory) == [1], "the message is remembered")
    assert await live.redis.llen(KEYS.outbox) == 1


async def test_a_memory_that_hangs_slows_nothing(live: Live) -> None:
    live.memory = HangingMemory()
    await live.start()
    for number in (1, 2, 3):
        await summarize(live, number)
    await wait_until(lambda: len(live.archive.rows) == 3, "everything is archived")


async def test_a_memory_that_cannot_forget_is_fed_all_the_same(live: Live) -> None:
    memory = live.memory = UnforgettingMemory()
    await live.start()
    for number in (1, 2):
        await summarize(live, number)
    await wait_until(lambda: messages(memory) == [1, 2], "both are remembered")
    await wait_until(lambda: live.lacks(KEYS.memory_outbox), "nothing waits any more")


async def test_an_ended_session_has_fed_the_memory(live: Live, memory: InMemoryStore) -> None:
    session = await live.start()
    await live.say(1, 2)
    session.end()
    await live.gone(session)
    assert (messages(memory), session.relays.unremembered) == ([1, 2], 0)
    assert await live.lacks(KEYS.memory_outbox)


async def test_a_session_ends_though_the_memory_is_away_and_says_what_waits(live: Live, memory: InMemoryStore) -> None:
    memory.failure = DatabaseUnavailable("away")
    session = await live.start()
    await live.say(1)
    session.end()
    await live.gone(session)
    assert (session.relays.undelivered, session.relays.unremembered) == (0, 1)


async def test_a_death_between_delivery_and_its_acknowledgement_doubles_nothing(live: Live, migrated_url: str) -> None:
    store = PostgresMemory(migrated_url)
    hanging = HangingAfter(store)
    live.memory = hanging
    session = await live.start()
    await summarize(live, 1, "Helicase unwinds the double helix")
    await wait_until(hanging.delivered.is_set, "the message was delivered")
    live.die(session)
    live.memory = store
    await live.start(takeover=True)
    await wait_until(lambda: live.lacks(KEYS.memory_outbox), "it was delivered again")
    everything = MemoryQuery("helicase", 50, filter=MemoryFilter(session_id="monday", kinds=("message",)))
    (found,) = await store.search(TENANT, everything)
    assert (found.memory.speaker, found.memory.text) == ("Alice", "Helicase unwinds the double helix")
    assert found.memory.metadata["message_number"] == 1
    assert await store.search("another tenant", everything) == []
    await store.close()


class HangingAfter(HangingMemory):
    """Passes on to ``store``, and never answers."""

    def __init__(self, store: PostgresMemory) -> None:
        super().__init__()
        self._store = store
        self.delivered = asyncio.Event()

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        await self._store.remember(tenant_id, memories)
        self.delivered.set()
        await asyncio.Event().wait()
