"""A long session is as large as a short one."""

from __future__ import annotations

import gc
import pickle
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest

from context_builder.memory.memory import Memory
from context_builder.session.checkpoint import write_head
from context_builder.session.conversation import Conversation
from context_builder.session.keys import Keys
from context_builder.session.publication import session_state
from context_builder.testing import ManualClock, MemoryMemory
from tests.session.live import Live
from tests.session.saying import conversation, message, points_of, spoken

pytestmark = [pytest.mark.engines, pytest.mark.slow]

STEP = 250
SHORT, LONG, HUGE = 2000, 5000, 100_000
"""Messages after which is measured."""


class Size(NamedTuple):
    """In bytes."""

    state: int
    checkpoint: int
    process: int


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("traced")
async def test_state_checkpoint_and_process_do_not_grow_with_the_session(live: Live) -> None:
    live.memory = _Forgetful()
    await live.start(buffer_max=1000)
    live.analyst.keyword_calls = live.analyst.domain_calls = live.analyst.summary_calls = _Forgetting()
    short = await grown(live, 0, SHORT)
    long = await grown(live, SHORT, LONG)
    assert long.state < 1.2 * short.state
    assert long.checkpoint < 1.2 * short.checkpoint
    assert long.process < short.process + 2_000_000


async def grown(live: Live, start: int, end: int) -> Size:
    """What there is after messages ``start`` to ``end``, all but the last few of which are summarized."""
    for first in range(start + 1, end + 1, STEP):
        last = first + STEP - 1
        await live.push(
            *(spoken(number, f"Sample {number} was measured in room {number % 7}") for number in range(first, last + 1))
        )
        await live.until(f"message {last} is there", received_messages=last)
        live.clock.advance(121)
        if last < end:
            await live.until(f"message {last} is summarized", message_count=last)
    await live.until("all is summarized", message_count=end)
    live.archive.rows.clear()
    keys = Keys("monday")
    gc.collect()
    return Size(
        state=await live.redis.strlen(keys.state),
        checkpoint=await live.redis.memory_usage(keys.checkpoint, samples=0) or 0,
        process=tracemalloc.get_traced_memory()[0],
    )


class _Forgetful(MemoryMemory):
    """Keeps nothing, for the same reason."""

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        return None


def test_a_hundred_thousand_messages_take_no_more_room_and_time_than_two_thousand() -> None:
    clock = ManualClock()
    subject = conversation(clock, buffer_max=1000)
    said(subject, clock, 0, SHORT)
    short = room(subject, clock)
    early = said(subject, clock, SHORT, 2 * SHORT)
    said(subject, clock, 2 * SHORT, HUGE - SHORT)
    late = said(subject, clock, HUGE - SHORT, HUGE)
    assert all(now < 1.3 * before for now, before in zip(room(subject, clock), short, strict=True))  # longer numbers
    assert late < 4 * early  # work that grew with the session would take fifty times as long
    assert subject.summary.message_count == HUGE


def said(subject: Conversation, clock: ManualClock, start: int, end: int) -> float:
    """Processor seconds that it takes to hear messages ``start`` to ``end``, write them down and summarize them."""
    began = time.process_time()
    for first in range(start + 1, end + 1, STEP):
        for number in range(first, first + STEP):
            subject.receive([message(number, f"Sample {number} was measured in room {number % 7}")], clock.now())
        clock.advance(121)
        while (work := subject.summary_work()) is not None:
            subject.finish(work, points_of(work), clock.now())
        subject.take_changes().encoded_fields()
    return time.process_time() - began


def room(subject: Conversation, clock: ManualClock) -> tuple[int, int, int]:
    """Bytes of the state, of the checkpoint, and of all that the conversation holds."""
    state = bytes(session_state(subject, 1, clock.now()))
    subject.everything_changed()
    fields = subject.take_changes().encoded_fields()
    return len(state), sum(map(len, fields.values())) + len(write_head(subject)), len(pickle.dumps(subject))


class _Forgetting(list[object]):
    """Remembers no calls, so that the stand-in does not grow either."""

    def append(self, _: object) -> None:
        return None
