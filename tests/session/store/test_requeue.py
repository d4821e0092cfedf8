"""Putting back what a receiver refused: it is delivered late, and undoes nothing that came after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from context_builder.analysis.analyst import SummaryRequest, SummaryResult
from context_builder.errors import DataRejected
from context_builder.memory.memory import Memory
from context_builder.session.conversation.memory_batch import Amendment, MemoryBatch, of_point
from context_builder.session.keys import Keys
from context_builder.session.store.dead_letters import DeadLetter, DeadLetters
from context_builder.session.summary.point import Point
from context_builder.testing import InMemoryStore, ManualClock, StubAnalyst
from tests.services.waiting import wait_until
from tests.session.live import TENANT, Live
from tests.session.saying import TEXT, conversation, hear, spoken, summarize

pytestmark = pytest.mark.engines

KEYS = Keys("monday")


class Memories(InMemoryStore):
    """Refuses what Mallory says for as long as ``refuses`` is set."""

    refuses = True

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        if self.refuses and any(memory.speaker == "Mallory" for memory in memories):
            raise DataRejected("refuses Mallory")
        await super().remember(tenant_id, memories)

    @property
    def texts(self) -> set[tuple[str, str]]:
        return {(memory.kind, memory.text) for memory in self.kept.get(TENANT, {}).values()}


async def say(live: Live, number: int, text: str, speaker: str = "Alice") -> None:
    """Say a message, and let it be summarized."""
    await live.push(spoken(number, text, speaker))
    await live.shows(number)
    live.clock.advance(121)
    await live.until(f"message {number} is summarized", message_count=number)


async def test_a_summary_that_is_put_back_is_archived_once_the_reason_is_gone(live: Live) -> None:
    live.archive.failure = DataRejected("refuses")
    await live.start()
    await say(live, 1, TEXT)
    await live.until("it is counted", undeliverable={"archive": 1, "memory": 0})
    live.archive.failure = None
    await say(live, 2, TEXT)
    letters = DeadLetters(live.redis, "monday", "archive")
    (letter,) = await letters.all()
    assert await letters.requeue(letter)
    assert not await letters.requeue(letter)
    await wait_until(lambda: [*live.archive.rows] == [("monday", 2), ("monday", 1)], "both are archived")
    assert await letters.all() == []
    assert int(await live.redis.hget(KEYS.checkpoint, "archive_dead_bytes") or -1) == 0


async def test_what_is_remembered_late_brings_no_replaced_point_back(live: Live) -> None:
    memory = live.memory = Memories()
    live.analyst = Restating()
    await live.start()
    await say(live, 1, "Helicase 17 unwinds the helix", "Mallory")
    await live.until("it is counted", undeliverable={"archive": 0, "memory": 1})
    for number in range(2, 4):
        await say(live, number, f"Sample {number} was cooled")
    await live.until("the rest is summarized", message_count=3)
    await wait_until(lambda: live.lacks(KEYS.memory_outbox), "the rest is remembered")
    before = {told for told in memory.texts if told[0] == "point"}
    assert before == {("point", "Sample 3 was cooled")}

    memory.refuses = False
    letters = DeadLetters(live.redis, "monday", "memory")
    assert await letters.requeue(await letters.get(1))
    await wait_until(lambda: ("message", "Helicase 17 unwinds the helix") in memory.texts, "the message is remembered")
    await wait_until(lambda: live.lacks(KEYS.memory_outbox), "all of the entry is delivered")
    assert {told for told in memory.texts if told[0] == "point"} == before


class Restating(StubAnalyst):
    """Puts each new point in the place of the one before."""

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        result = await super().summarize(request)
        known = tuple(point.id for point in request.known[-1:])
        return replace(result, points=tuple(replace(point, replaces=known) for point in result.points))


async def test_random_bytes_are_put_back_as_they_were(live: Live) -> None:
    await live.redis.rpush(KEYS.memory_outbox, b"\xffrandom")
    await live.start()
    await live.until("they are counted", undeliverable={"archive": 0, "memory": 1})
    letters = DeadLetters(live.redis, "monday", "memory")
    assert await letters.requeue(await letters.get(1))
    await live.until("they are counted again", undeliverable={"archive": 0, "memory": 2})
    assert (await letters.get(1)).raw == b"\xffrandom"


def test_of_a_late_part_only_what_was_not_replaced_is_remembered(clock: ManualClock) -> None:
    subject = conversation(clock, feed_memory=True)
    hear(subject, clock, 1, 2, 3)
    summarize(subject, clock)
    (part,) = subject.take_changes().memory_outbox
    first, second, third = subject.summary.ledger.points
    late = MemoryBatch.decode(part.encode()).at_present([(second.id, second.time)])
    assert [one.id for one in late.memories] == [
        *(memory.id for memory in part.memories if memory.kind == "message"),
        *(_id(point) for point in (first, third)),
    ]
    assert late.superseded == part.superseded


def _id(point: Point) -> str:
    return of_point("monday", point, {}).id


async def test_what_is_put_back_behind_a_correction_says_what_that_says(live: Live) -> None:
    said = MemoryBatch("monday", [Memory("m1", "fifteen", session_id="monday", speaker="Ann")])
    correction = MemoryBatch("monday", amended=(Amendment("m1", "fifty", "Ida"),), renamed=(("Ann", "Ida"),))
    letter = DeadLetter.of(said.encode(), "refused", live.clock.now())
    await live.redis.lpush(KEYS.memory_dead, letter.encode())
    await live.redis.rpush(KEYS.memory_outbox, correction.encode(), b"\xffrandom")
    assert await DeadLetters(live.redis, "monday", "memory").requeue(letter)
    put_back = MemoryBatch.decode(await live.redis.lindex(KEYS.memory_outbox, -1))
    assert [(one.speaker, one.text) for one in put_back.memories] == [("Ida", "fifty")]
