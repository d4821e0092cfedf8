"""A long session is as large as a short one, in Redis and in the process, and as quick."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest

from context_builder.analysis.analyst import SummaryRequest, SummaryResult
from context_builder.memory.memory import Memory
from context_builder.session.keys import Keys
from context_builder.session.messages.message_index import INDEXED
from context_builder.testing import InMemoryStore, StubAnalyst
from tests.services.waiting import wait_until
from tests.session.live import Live
from tests.session.saying import spoken

pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.timeout(900)]

STEP = 1000
SHORT, HUGE = 2000, 100_000
"""Messages after which is measured."""

KEYS = Keys("monday")


class Cost(NamedTuple):
    """Bytes that are published, and that Redis holds besides identities and the index of what may be corrected; blocks
    of memory that Python holds; and processor seconds for each message since the last time."""

    state: int
    redis: int
    blocks: int
    seconds: float


@pytest.mark.long
async def test_a_hundred_thousand_messages_take_no_more_room_and_time_than_two_thousand(live: Live) -> None:
    live.memory, live.analyst = _Forgetful(), _Terse()
    await live.start(buffer_max=STEP, keyword_batch=STEP, summary_growth=0)  # which is bounded, but not at once
    short = await heard(live, 0, SHORT)
    early = await heard(live, SHORT, 2 * SHORT)
    await heard(live, 2 * SHORT, HUGE - SHORT)
    late = await heard(live, HUGE - SHORT, HUGE)
    assert late.state < 1.3 * short.state  # for longer numbers
    assert late.redis < 1.3 * short.redis
    assert late.blocks < short.blocks + HUGE // 2
    assert late.seconds < 4 * early.seconds  # work that grew with the session would take fifty times as long
    assert await live.redis.scard(KEYS.seen) == HUGE
    assert (await live.redis.memory_usage(KEYS.seen, samples=0) or 0) < 80 * HUGE
    assert (await live.redis.memory_usage(KEYS.message_index, samples=0) or 0) < 240 * INDEXED


async def heard(live: Live, start: int, end: int) -> Cost:
    """What it costs to take in messages ``start`` to ``end``, all of which are summarized and remembered."""
    began = time.process_time()
    for first in range(start + 1, end + 1, STEP):
        last = first + STEP - 1
        await live.push(*(spoken(n, f"Sample {n} was measured in room {n % 7}") for n in range(first, last + 1)))
        await live.until(f"message {last} is there", received_messages=last)
        live.clock.advance(121)
        await live.until(f"message {last} is summarized", message_count=last)
    taken = time.process_time() - began
    await wait_until(lambda: live.lacks(KEYS.outbox, KEYS.memory_outbox), "all is delivered")
    live.archive.rows.clear()
    gc.collect()
    held = [
        key async for key in live.redis.scan_iter("*:monday:*") if key.decode() not in (KEYS.seen, KEYS.message_index)
    ]
    assert KEYS.checkpoint.encode() in held
    return Cost(
        state=await live.redis.strlen(KEYS.state),
        redis=sum([await live.redis.memory_usage(key, samples=0) or 0 for key in held]),
        blocks=sys.getallocatedblocks(),
        seconds=taken / (end - start),
    )


class _Forgetful(InMemoryStore):
    """Keeps nothing, so that what is measured is the session."""

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        return None


class _Terse(StubAnalyst):
    """Makes a point of each tenth message, and remembers no calls."""

    def __init__(self) -> None:
        super().__init__()
        self.keyword_calls = self.domain_calls = self.summary_calls = _Forgetting()

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        reading = await super().summarize(request)
        return replace(reading, points=reading.points[::10])


class _Forgetting(list[object]):
    def append(self, _: object) -> None:
        return None
