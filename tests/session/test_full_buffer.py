"""A buffer that is full, by count or by bytes: every message is seen at once, none is lost, and none costs much."""

from __future__ import annotations

import asyncio

import pytest

from context_builder.analysis.analyst import SummaryRequest, SummaryResult
from context_builder.session.keys import Keys
from context_builder.testing import StubAnalyst
from tests.services.waiting import wait_until
from tests.session.live import Live
from tests.session.saying import advised, spoken

pytestmark = pytest.mark.engines

KEYS = Keys("monday")
ROOM = 50_000
"""Bytes of the buffer, in which two of the long messages fit."""


class SlowSummarizer(StubAnalyst):
    """Reads messages at once; summaries wait until they are allowed."""

    def __init__(self) -> None:
        super().__init__()
        self.may_summarize = asyncio.Event()

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        await self.may_summarize.wait()
        return await super().summarize(request)


@pytest.fixture
def slow(live: Live) -> SlowSummarizer:
    live.analyst = SlowSummarizer()
    return live.analyst


def long(number: int, characters: int = 20_000) -> dict[str, object]:
    return spoken(number, f"Sample {number}" + " é" * (characters // 3))


async def test_what_has_no_room_by_its_bytes_is_pending_and_comes_to_be_summarized(
    live: Live, slow: SlowSummarizer
) -> None:
    session = await live.start(buffer_max_bytes=ROOM, summary_input=20)
    for number in range(1, 10):
        await live.push(long(number))
        first = max(1, number - 1)
        await live.shows(*range(first, number + 1))
        assert await live.redis.strlen(KEYS.state) < 2 * ROOM
    await live.until("the others are pending", pending_messages=7, messages_since_summary=9)
    await live.stop(session)
    await live.start(buffer_max_bytes=ROOM, summary_input=20)
    await live.shows(8, 9)
    slow.may_summarize.set()
    live.clock.advance(121)
    await live.until("all are summarized", message_count=9, pending_messages=0, covers_messages=[1, 9])
    assert [said.number for request in slow.summary_calls for said in request.messages] == [*range(1, 10)]


async def test_a_crash_amid_long_messages_leaves_each_in_one_place(live: Live, slow: SlowSummarizer) -> None:
    session = await live.start(buffer_max_bytes=ROOM, summary_input=20)
    await live.push(*(long(number) for number in range(1, 7)))
    await live.until("all came", received_messages=6, pending_messages=4)
    live.die(session)
    await live.push(long(7))
    await live.start(takeover=True, buffer_max_bytes=ROOM, summary_input=20)
    await live.until("all came", received_messages=7, pending_messages=5)
    slow.may_summarize.set()
    live.clock.advance(121)
    await live.until("all are summarized", message_count=7)
    assert sorted(said.number or 0 for request in slow.summary_calls for said in request.messages) == [*range(1, 8)]


async def test_a_message_that_is_larger_than_all_the_room_is_published_alone(live: Live, slow: SlowSummarizer) -> None:
    await live.start(buffer_max_bytes=ROOM)
    await live.say(1, 2)
    await live.push(long(3, 100_000))
    assert (await live.shows(3))["raw_recent_buffer"][0]["text"] == long(3, 100_000)["text"]
    await live.say(4)
    await live.shows(4)
    slow.may_summarize.set()
    live.clock.advance(121)
    await live.until("all are summarized", message_count=4)


async def test_the_assistants_long_contributions_are_bounded_too(live: Live, slow: SlowSummarizer) -> None:
    session = await live.start(buffer_max_bytes=ROOM)
    for number in range(1, 10):
        await live.push(advised(f"advice {number}".ljust(20_000), number))
        await live.until("it is there", received_messages=number)
    kept = (await live.state())["consilience_responses"]
    assert [response["message_number"] for response in kept] == [8, 9]
    await live.stop(session)
    await live.start(buffer_max_bytes=ROOM)
    await live.push(advised("x" * 2 * ROOM, 10))
    await live.until("it is there", received_messages=10)
    assert [response["message_number"] for response in (await live.state())["consilience_responses"]] == [10]
    assert slow.summary_calls == []


async def bytes_received(live: Live) -> int:
    return int((await live.redis.info("stats"))["total_net_input_bytes"])


async def test_past_a_full_buffer_a_message_costs_redis_little_more_than_in_a_young_session(
    live: Live, slow: SlowSummarizer
) -> None:
    await live.start(buffer_max=200, tick=5)
    costs = []
    for first, last in ((1, 40), (41, 240), (241, 480)):  # a young session, filling, full
        before = await bytes_received(live)
        for number in range(first, last + 1):
            await live.say(number)
            await wait_until(lambda n=number: understood(live, n), f"message {number} is understood", poll=0.005)
        costs.append((await bytes_received(live) - before) / (last + 1 - first))
    state = await live.state()
    assert [entry["message_number"] for entry in state["raw_recent_buffer"]] == [*range(281, 481)]
    assert (state["pending_messages"], state["messages_since_summary"]) == (280, 480)
    assert costs[2] < 1.5 * costs[0]  # with all of the state each time it would be ten times as much
    assert slow.summary_calls == []


async def understood(live: Live, number: int) -> bool:
    """Whether the newest message is the one of that number, with keywords; told by the end of the state alone."""
    end = await live.redis.getrange(KEYS.state, -2500, -1)
    _, found, after = end.rpartition(b'"message_number":%d,' % number)
    return bool(found) and b'"keywords":[]' not in after


async def test_what_waits_for_summaries_is_bounded_and_the_rest_stays_in_the_input(
    live: Live, slow: SlowSummarizer
) -> None:
    bound = {"buffer_max_bytes": ROOM, "pending_max_bytes": 60_000, "summary_input": 20, "read_batch": 1}
    session = await live.start(**bound)
    for number in range(1, 13):
        await live.push(long(number))
    await wait_until(lambda: is_full(live), "what waits is as much as may wait")
    await live.stop(session)
    assert 0 < await live.redis.llen(KEYS.pending) <= 4
    assert await live.redis.llen(KEYS.input) >= 6
    session = await live.start(**bound)
    assert await live.redis.llen(KEYS.pending) <= 4
    slow.may_summarize.set()
    await live.until("all came", received_messages=12, pending_messages=0)
    live.clock.advance(121)
    await live.until("all are summarized", message_count=12, pending_messages=0, covers_messages=[1, 12])


async def is_full(live: Live) -> bool:
    return await live.redis.llen(KEYS.pending) >= 3 and await live.redis.llen(KEYS.input) >= 6
