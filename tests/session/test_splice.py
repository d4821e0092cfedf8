"""Of a state that only grows at its end, only the end is sent; readers never notice."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis

from context_builder.session.commit import Commit
from context_builder.session.holder import this_holder
from context_builder.session.keys import Keys
from context_builder.session.rules import Rules
from context_builder.session.splice import Splice, common_start
from context_builder.session.state import State
from context_builder.session.store import SessionStore

KEYS = Keys("monday")
MANY = [f"message {number}" for number in range(200)]


def state(messages: list[str], revision: int) -> State:
    return State(b'{"messages":[', [orjson.dumps(message) for message in messages], b'],"revision":%d}' % revision)


def commit(published: State) -> Commit:
    return Commit(conversation_state=b"{}", active_at=1.0, state=published, head=b"{}", order=b"[]")


async def owned(redis: Redis) -> SessionStore:
    mine = SessionStore(redis, "monday", Rules())
    await mine.acquire(this_holder(0.0))
    await mine.load()
    return mine


async def bytes_received(redis: Redis) -> int:
    return int((await redis.info("stats"))["total_net_input_bytes"])


SOME = st.lists(st.binary(max_size=3))
STATES = st.builds(State, st.sampled_from([b"", b"{"]), SOME, st.binary(max_size=3))


@given(STATES, STATES, SOME)
def test_a_splice_makes_the_new_text_of_the_old(one: State, other: State, shared: list[bytes]) -> None:
    old, new = (replace(state, entries=[*shared, *state.entries]) for state in (one, other))
    splice, before = Splice.between(old, new), bytes(old)
    assert before[: splice.at] + splice.text == bytes(new)
    assert splice.at == 0 or (splice.length == len(before) <= len(bytes(new)) and before.endswith(splice.mark))


@given(STATES, st.integers(min_value=0))
def test_a_state_can_be_cut_after_any_entry(whole: State, place: int) -> None:
    entries = place % (len(whole.entries) + 1)
    first = b",".join(whole.entries[:entries])
    assert whole.before + first + whole.rest(entries) == bytes(whole)
    assert whole.length == len(bytes(whole))


@given(SOME, SOME)
def test_the_common_start_is_as_long_as_it_can_be(old: list[bytes], new: list[bytes]) -> None:
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
    assert await redis.get(KEYS.state) == bytes(state([*MANY, "one more"], 2))
    assert 0 < await redis.pttl(KEYS.state) <= 3_600_000
    assert await bytes_received(redis) - before < state(MANY, 1).length // 2


@pytest.mark.engines
@pytest.mark.parametrize("touched", [None, bytes(state(MANY, 9)), b"{}", b" " + bytes(state(MANY, 1))])
async def test_a_state_that_is_not_what_was_written_last_is_replaced_whole(redis: Redis, touched: bytes | None) -> None:
    mine = await owned(redis)
    await mine.commit(commit(state(MANY, 1)))
    await (redis.delete(KEYS.state) if touched is None else redis.set(KEYS.state, touched))
    grown = state([*MANY, "one more"], 2)
    assert not (await mine.commit(commit(grown))).published
    assert (await mine.commit(replace(commit(grown), head=b""))).published
    assert await redis.get(KEYS.state) == bytes(grown)
