"""Of a state only what changed is sent, also when the oldest message leaves as one comes; readers never notice."""

from __future__ import annotations

import random
from copy import copy
from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis

from context_builder.session.config import SessionConfig
from context_builder.session.conversation.published_state import PublishedState
from context_builder.session.keys import Keys
from context_builder.session.store.commit import Commit
from context_builder.session.store.lease import this_holder
from context_builder.session.store.state_patch import MOST_BLANK, StatePatch, StoredState, common_start
from context_builder.session.store.store import SessionStore

KEYS = Keys("monday")
MANY = [f"message {number}" for number in range(200)]
TEXTS = st.text(max_size=3)
SOME = st.lists(TEXTS, max_size=6)


def state(messages: list[str], revision: int, summary: str = "") -> PublishedState:
    before = b'{"summary":%b,"messages":[' % orjson.dumps(summary)
    return PublishedState(before, [orjson.dumps(message) for message in messages], b'],"revision":%d}' % revision)


def read(published: bytes) -> tuple[list[str], int, str]:
    """What a reader sees."""
    fields = orjson.loads(published)
    return fields["messages"], fields["revision"], fields["summary"]


def applied(patch: StatePatch, value: bytes) -> bytes:
    """The value after the patch, as ``commit.lua`` applies it."""
    if patch.whole:
        return patch.whole
    assert (len(value), value[-len(patch.mark) :]) == (patch.length, patch.mark)
    changed = bytearray(value)
    for at, spaces, text in patch.edits:
        assert at <= len(changed)
        changed[at : at + spaces + len(text)] = b" " * spaces + text
    return bytes(changed)


CHANGE = st.sampled_from(["come", "leave", "late", "change", "summarize", "count"])


@given(SOME, st.lists(st.tuples(CHANGE, TEXTS, st.integers(0, 5)), max_size=30))
def test_any_changes_of_a_state_reach_readers(messages: list[str], changes: list[tuple[str, str, int]]) -> None:
    published, value, summary = None, b"", ""
    for revision, (what, text, place) in enumerate([("count", "", 0), *changes]):
        match what:
            case "come":
                messages = [*messages, text]
            case "leave":
                messages = messages[place:]
            case "late":
                messages = [*messages[:place], text, *messages[place:]]
            case "change":
                messages = [
                    *messages[:place],
                    *(f"{old}{text}" for old in messages[place:][:1]),
                    *messages[place + 1 :],
                ]
            case "summarize":
                summary, messages = text, messages[place:]
        new = state(messages, revision * 10**place, summary)
        patch = StatePatch.between(published, new)
        value, published = applied(patch, value), patch.result
        assert value == bytes(published)
        assert len(value) == published.length
        assert len(value) <= (1 + MOST_BLANK) * new.length
        assert read(value) == (messages, revision * 10**place, summary)
        assert published.state is new


@given(st.lists(st.binary(max_size=3)), st.lists(st.binary(max_size=3)))
def test_the_common_start_is_as_long_as_it_can_be(old: list[bytes], new: list[bytes]) -> None:
    length = common_start(old, new)
    assert old[:length] == new[:length]
    assert old[length : length + 1] != new[length : length + 1] or length == len(old) == len(new)


def sent(states: list[PublishedState]) -> float:
    """Bytes that each of the states costs on average, after the first."""
    published = StatePatch.between(None, states[0]).result
    total = 0
    for new in states[1:]:
        patch = StatePatch.between(published, new)
        total, published = total + patch.size, patch.result
    return total / (len(states) - 1)


@pytest.mark.parametrize("length", [300, 50_000])
def test_when_the_oldest_leaves_as_one_comes_a_few_messages_are_sent(length: int) -> None:
    said = [f"{number:05}".ljust(length) for number in range(500)]
    full = [state(said[number : number + 100], number) for number in range(400)]
    assert sent(full) < 4 * length  # a hundred would be all of it


def test_what_is_learnt_about_a_long_message_is_sent_without_its_text() -> None:
    long = "x" * 200_000
    understood = [state([*MANY, long], 1), state([*MANY, f"{long} keywords"], 2)]
    assert sent(understood) < 1000


def test_a_shorter_end_does_not_have_all_of_the_state_sent() -> None:
    assert sent([state(MANY, 10), state(MANY, 9)]) < 100


def test_a_new_beginning_takes_the_room_of_what_left() -> None:
    summarized = [state(MANY, 1), state(MANY[10:], 2), state(MANY[10:], 3, "ten were summarized")]
    assert sent(summarized) < 100


def commit(published: PublishedState) -> Commit:
    return Commit(conversation_state=b"{}", active_at=1.0, state=published, head=b"{}", order=b"[]")


async def owned(redis: Redis) -> SessionStore:
    mine = SessionStore(redis, "monday", SessionConfig())
    await mine.acquire(this_holder(0.0))
    await mine.load()
    return mine


async def bytes_received(redis: Redis) -> int:
    return int((await redis.info("stats"))["total_net_input_bytes"])


@pytest.mark.engines
async def test_a_full_buffer_is_read_whole_although_little_of_it_is_sent(redis: Redis) -> None:
    mine, drawn = await owned(redis), random.Random(1)
    said = [f"{number} {'é' * drawn.randrange(900)}" for number in range(400)]
    await mine.commit(commit(state(said[:100], 0)))
    before = await bytes_received(redis)
    for number in range(1, 301):
        assert (await mine.commit(commit(state(said[number : number + 100], number)))).state_present
        assert read(await redis.get(KEYS.state) or b"") == (said[number : number + 100], number, "")
    assert 0 < await redis.pttl(KEYS.state) <= 3_600_000
    assert await bytes_received(redis) - before < 300 * state(said[:100], 0).length // 10


TOUCHED = [None, bytes(state(MANY, 9)), b"{}", b" " + bytes(state(MANY, 1)), b" " * len(bytes(state(MANY, 1)))]


@pytest.mark.engines
@pytest.mark.parametrize("touched", TOUCHED)
async def test_a_state_that_is_not_what_was_written_last_is_replaced_whole(redis: Redis, touched: bytes | None) -> None:
    mine = await owned(redis)
    await mine.commit(commit(state(MANY, 1)))
    await (redis.delete(KEYS.state) if touched is None else redis.set(KEYS.state, touched))
    moved = state([*MANY[1:], "one more"], 2)
    assert not (await mine.commit(commit(moved))).state_present
    assert await redis.get(KEYS.state) == touched
    assert (await mine.commit(replace(commit(moved), head=b""))).state_present
    assert await redis.get(KEYS.state) == bytes(moved)


@pytest.mark.engines
async def test_a_patch_that_is_sent_again_is_not_applied_twice(redis: Redis) -> None:
    mine = await owned(redis)
    await mine.commit(commit(state(MANY, 1)))
    moved = commit(state([*MANY[1:], "one more"], 2))
    unheard = copy(mine)  # as it is without the answer
    await mine.commit(moved)
    assert not (await unheard.commit(moved)).state_present
    assert read(await redis.get(KEYS.state) or b"") == ([*MANY[1:], "one more"], 2, "")


def test_a_state_tells_where_its_parts_are() -> None:
    published = StoredState(state(["one", "two"], 3), gap=5, pad=2)
    assert bytes(published)[published.first :].startswith(b'"one","two"  ],')
    assert (len(bytes(published)), published.mark) == (published.length, b'],"revision":3}')
