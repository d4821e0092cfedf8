"""What is said is found at once, before it is summarized; a memory that fails costs the session nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial

import pytest

from context_builder.errors import DatabaseRejected, DatabaseUnavailable, LeaseLost
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.session import message_feed
from context_builder.session.keys import Keys
from context_builder.session.store.registry import SessionRegistry
from context_builder.testing import InMemoryStore
from tests.services.waiting import PATIENCE, wait_until
from tests.session.conftest import HOSTED_TOO
from tests.session.live import TENANT, Live
from tests.session.memories import PricedMemory, SlowMemory
from tests.session.saying import spoken

pytestmark = [pytest.mark.engines, HOSTED_TOO]

ALL = MemoryFilter(session_id="monday")


@pytest.fixture
async def memory(live: Live, migrated_url: str) -> AsyncIterator[PostgresMemory]:
    store = PostgresMemory(migrated_url)
    live.memory = store
    yield store
    for session in list(live.tasks):
        await live.stop(session)
    await store.close()


async def found(memory: PostgresMemory, words: str) -> list[Memory]:
    return [one.memory for one in await memory.search(TENANT, MemoryQuery(words, 50, filter=ALL))]


async def test_a_message_is_found_by_its_words_before_any_model_answers(live: Live, memory: PostgresMemory) -> None:
    live.analyst.gate.clear()
    await live.start()
    await live.push(spoken(1, "Helicase was found"))
    (one,) = await wait_until(partial(found, memory, "helicase"), "it is found")
    assert (one.speaker, one.position, one.metadata["message_number"]) == ("Alice", 1, 1)
    assert (await live.state())["rolling_summary"]["message_count"] == 0


async def test_two_hundred_messages_at_once_are_found_after_few_batches(
    live: Live, memory: PostgresMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.analyst.gate.clear()
    batches, remember = [], memory.remember

    async def counted(tenant_id: str, memories: Sequence[Memory]) -> None:
        batches.append(memories)
        await remember(tenant_id, memories)

    monkeypatch.setattr(memory, "remember", counted)
    await live.start(buffer_max=50)
    await live.push(*(spoken(number, f"Sample {number} was labelled") for number in range(1, 201)))

    async def all_found() -> bool:
        return bool(await found(memory, "200")) and bool(await found(memory, "1"))

    await wait_until(all_found, "the first and the last are found")
    assert len(batches) * message_feed.INTERVAL < 1  # second, on a machine with nothing else to do


async def test_summarized_it_is_the_same_memory_and_knows_more(live: Live, memory: PostgresMemory) -> None:
    await live.start()
    await live.say(1)
    (before,) = await wait_until(lambda: found(memory, "helicase"), "it is found")
    await live.say(1)  # known already
    live.clock.advance(121)

    async def is_delivered() -> bool:
        return len(await found(memory, "helicase")) > 0 and not await live.redis.exists(Keys("monday").memory_outbox)

    await live.until("it is summarized", message_count=1)
    await wait_until(is_delivered, "it is delivered")
    kept = await memory.search(TENANT, MemoryQuery("", 50, filter=ALL))
    assert [one.memory.id for one in kept if one.memory.kind == "message"] == [before.id]
    assert sorted(one.memory.kind for one in kept) == ["message", "point"]


async def test_what_a_dead_process_left_is_found_when_the_next_one_runs(live: Live, memory: PostgresMemory) -> None:
    live.memory = away = InMemoryStore()
    away.failure = DatabaseUnavailable("away")
    session = await live.start()
    await live.say(1)
    await live.shows(1)
    live.die(session)
    live.memory = memory
    await live.start(takeover=True)
    await wait_until(lambda: found(memory, "helicase"), "it is found")


async def test_a_memory_that_is_away_is_left_alone_and_told_when_it_is_back(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_feed, "INTERVAL", 0.0)
    live.memory = memory = Counting()
    memory.failure = DatabaseUnavailable("away")
    await live.start()
    await live.say(1)
    await wait_until(lambda: memory.asked == 3, "it has failed three times")
    for number in (2, 3, 4):
        await live.say(number)
        await live.shows(*range(1, number + 1))
    assert memory.asked == 3
    memory.failure = None
    live.clock.advance(16)
    await wait_until(lambda: len(messages(memory)) == 4, "all are remembered")
    assert (await live.state())["rolling_summary"]["message_count"] == 0


async def test_what_a_memory_refuses_does_not_hold_up_what_follows(live: Live) -> None:
    live.memory = memory = Counting()
    memory.failure = DatabaseRejected("not this")
    await live.start()
    await live.say(1)
    await wait_until(lambda: memory.asked, "it was refused")
    memory.failure = None
    await live.say(2)
    (kept,) = await wait_until(lambda: messages(memory), "the next is remembered")
    assert kept.metadata["message_number"] == 2


async def test_a_memory_that_never_answers_delays_no_message(live: Live) -> None:
    live.memory = memory = SlowMemory()
    session = await live.start()
    await live.say(1)
    await asyncio.wait_for(memory.asked.wait(), PATIENCE)
    await live.say(2)
    await live.shows(1, 2)
    await live.stop(session)


async def test_what_embeddings_cost_is_part_of_what_the_session_costs(live: Live) -> None:
    live.memory = PricedMemory()
    await live.start()
    await live.say(1)

    async def cost() -> float:
        return float((await live.state()).get("cost", {}).get("dollars", 0.0))

    assert await wait_until(cost, "it is charged") == 0.25
    assert (await live.state())["rolling_summary"]["message_count"] == 0


async def test_without_memory_the_session_goes_on_and_the_outbox_delivers_later(live: Live) -> None:
    live.memory = memory = InMemoryStore()
    memory.failure = DatabaseUnavailable("away")
    await live.start()
    for number in (1, 2, 3):
        await live.say(number)
        await live.shows(*range(1, number + 1))
    memory.failure = None
    live.clock.advance(121)
    await wait_until(lambda: len(messages(memory)) == 3, "all are remembered")


@pytest.mark.parametrize("begun_anew", [False, True])
async def test_what_is_under_way_while_a_session_is_forgotten_does_not_come_back(live: Live, begun_anew: bool) -> None:
    live.memory = memory = SlowMemory()
    session = await live.start()
    await live.say(1)
    await asyncio.wait_for(memory.asked.wait(), PATIENCE)
    await SessionRegistry(live.redis).forget("monday")
    if begun_anew:
        await live.redis.hset(Keys("monday").checkpoint, "revision", 1)  # type: ignore[misc]
    memory.may.set()
    with pytest.raises(LeaseLost, match=r"forgotten|continued"):
        await live.gone(session)
    assert messages(memory) == []


async def test_a_store_that_cannot_take_it_is_fed_summaries_alone(live: Live) -> None:
    live.memory = memory = InMemoryStore()
    memory.supports_message_feed = False
    await live.start()
    await live.say(1)
    await live.shows(1)
    live.clock.advance(121)
    await wait_until(lambda: memory.kept, "it is remembered")
    assert {one.kind for one in memory.kept[TENANT].values()} == {"message", "point"}


class Counting(InMemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        self.asked += 1
        await super().remember(tenant_id, memories)


def messages(memory: InMemoryStore) -> list[Memory]:
    return [one for one in memory.kept.get(TENANT, {}).values() if one.kind == "message"]
