"""Of a state that only grows at its end, only the end is sent; readers never notice."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis

from context_builder.session.holder import this_holder
from context_builder.session.keys import Keys
from context_builder.session.rules import Rules
from context_builder.session.splice import Splice, common_start
from context_builder.session.store import Commit, SessionStore

KEYS = Keys("monday")
MANY = [f"message {number}" for number in range(200)]


def state(messages: list[str], revision: int) -> bytes:
    return orjson.dumps({"messages": messages, "revision": revision})


def commit(encoded: bytes) -> Commit:
    return Commit(conversation_state=b"{}", active_at=1.0, state=encoded, head=b"{}", order=b"[]")


async def owned(redis: Redis) -> SessionStore:
    mine = SessionStore(redis, "monday", Rules())
    await mine.acquire(this_holder(0.0))
    await mine.load()
    return mine


async def bytes_received(redis: Redis) -> int:
    return int((await redis.info("stats"))["total_net_input_bytes"])


@given(st.binary(), st.binary(), st.binary())
def test_a_splice_makes_the_new_text_of_the_old(start: bytes, old_end: bytes, new_end: bytes) -> None:
    old, new = start + old_end, start + new_end
    splice = Splice.between(old, new)
    assert old[: splice.at] + splice.text == new
    assert splice.at == 0 or (splice.length == len(old) and old.endswith(splice.mark))


@given(st.binary(), st.binary())
def test_the_common_start_is_as_long_as_it_can_be(old: bytes, new: bytes) -> None:
    length = common_start(old, new)
    assert old[:length] == new[:length]
    assert old[length : length + 1] != new[length : length + 1] or length == len(old) == len(new)


@pytest.mark.engines
async def test_one_more_message_is_sent_alone_and_the_state_reads_whole(redis: Redis) -> None:
    mine = await owned(redis)
    await mine.commit(commit(state(MANY, 1)))
    before = await bytes_received(redis)
    committed = await mine.commit(commit(state([*MANY, "one more"], 2)))
    assert committed.published
    assert await redis.get(KEYS.state) == state([*MANY, "one more"], 2)
    assert 0 < await redis.pttl(KEYS.state) <= 3_600_000
    assert await bytes_received(redis) - before < len(state(MANY, 1)) // 2


@pytest.mark.engines
@pytest.mark.parametrize("touched", [None, state(MANY, 9), b"{}"])
async def test_a_state_that_is_not_what_was_written_last_is_replaced_whole(redis: Redis, touched: bytes | None) -> None:
    mine = await owned(redis)
    await mine.commit(commit(state(MANY, 1)))
    await (redis.delete(KEYS.state) if touched is None else redis.set(KEYS.state, touched))
    grown = state([*MANY, "one more"], 2)
    assert not (await mine.commit(commit(grown))).published
    assert (await mine.commit(replace(commit(grown), head=b""))).published
    assert await redis.get(KEYS.state) == grown
