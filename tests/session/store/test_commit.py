"""Of a state only what changed is sent, also when the oldest message leaves as one comes; readers never notice."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis

from context_builder.session.config import SessionConfig
from context_builder.session.conversation.state import PublishedState
from context_builder.session.keys import Keys
from context_builder.session.messages.buffer import Publication
from context_builder.session.store.commit import MOST_BLANK, Commit, StatePatch, StoredState, common_start
from context_builder.session.store.lease import this_holder
from context_builder.session.store.store import SessionStore

KEYS = Keys("monday")
MANY = [f"message {number}" for number in range(200)]
TEXTS = st.text(max_size=3)
SOME = st.lists(TEXTS, max_size=6)


class Talk:
    """Publishes messages."""

    def __init__(self, *messages: str) -> None:
        self.messages: list[str] = []
        self.publication = Publication()
        self.come(*messages)

    def come(self, *messages: str) -> None:
        for message in messages:
            self.messages.append(message)
            self.publication.append(orjson.dumps(message))

    def leave(self, count: int) -> None:
        del self.messages[:count]
        self.publication.drop_first(count)

    def late(self, place: int, message: str) -> None:
        self.messages.insert(place, message)
        self.publication.insert(place, orjson.dumps(message))

    def change(self, place: int, more: str) -> None:
        self.messages[place] += more
        self.publication.replace(place, orjson.dumps(self.messages[place]))

    def keep(self, wanted: list[bool]) -> None:
        self.messages = [message for message, is_wanted in zip(self.messages, wanted, strict=True) if is_wanted]
        self.publication.keep(wanted)

    def state(self, revision: int, summary: str = "") -> PublishedState:
        before = b'{"summary":%b,"messages":[' % orjson.dumps(summary)
        return PublishedState(before, self.publication.take(), b'],"revision":%d}' % revision)


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


CHANGE = st.sampled_from(["come", "leave", "late", "change", "summarize", "remove"])
CHANGES = st.lists(st.tuples(CHANGE, TEXTS, st.integers(0, 5)), max_size=5)


def changed(talk: Talk, what: str, text: str, place: int) -> None:
    match what:
        case "come":
            talk.come(text)
        case "leave" | "summarize":
            talk.leave(min(place, len(talk.messages)))
        case "late" if place <= len(talk.messages):
            talk.late(place, text)
        case "change" if place < len(talk.messages):
            talk.change(place, text)
        case "remove":
            talk.keep([number % 3 != place % 3 for number in range(len(talk.messages))])


@given(SOME, st.lists(CHANGES, max_size=12))
def test_any_changes_of_a_state_reach_readers(messages: list[str], steps: list[list[tuple[str, str, int]]]) -> None:
    published, value, summary, talk = None, b"", "", Talk(*messages)
    for revision, changes in enumerate([[], *steps]):
        for what, text, place in changes:
            changed(talk, what, text, place)
            summary = text if what == "summarize" else summary
        number = revision * 10 ** len(changes)
        new = talk.state(number, summary)
        patch = StatePatch.between(published, new)
        value, published = applied(patch, value), patch.result
        assert value == bytes(published)
        assert len(value) == published.length
        assert len(value) <= (1 + MOST_BLANK) * new.length
        assert read(value) == (talk.messages, number, summary)
        assert published.state is new


def test_a_state_that_does_not_tell_how_it_differs_from_the_one_in_redis_is_sent_whole() -> None:
    talk = Talk(*MANY)
    published = StatePatch.between(None, talk.state(1)).result
    talk.state(2)  # never sent
    assert StatePatch.between(published, talk.state(3)).whole
    assert StatePatch.between(published, Talk(*MANY).state(2)).whole


def test_what_was_published_cannot_be_had_after_it_changed() -> None:
    talk = Talk("one", "two")
    before = talk.state(1)
    assert bytes(before) == b'{"summary":"","messages":["one","two"],"revision":1}'
    talk.change(0, "!")
    with pytest.raises(RuntimeError, match="has changed"):
        bytes(before)
    assert read(bytes(talk.state(2))) == (["one!", "two"], 2, "")


@given(st.binary(max_size=3), st.binary(max_size=3))
def test_the_common_start_is_as_long_as_it_can_be(old: bytes, new: bytes) -> None:
    length = common_start(old, new)
    assert old[:length] == new[:length]
    assert old[length : length + 1] != new[length : length + 1] or length == len(old) == len(new)


def sent(states: Iterable[PublishedState]) -> float:
    """Bytes that each of the states costs on average, after the first."""
    published, total, count = None, 0, -1
    for new in states:
        patch = StatePatch.between(published, new)
        total += patch.size if published else 0
        published, count = patch.result, count + 1
    return total / count


@pytest.mark.parametrize("length", [300, 50_000])
def test_when_the_oldest_leaves_as_one_comes_a_few_messages_are_sent(length: int) -> None:
    said = [f"{number:05}".ljust(length) for number in range(500)]
    talk = Talk(*said[:100])

    def full() -> Iterator[PublishedState]:
        for number in range(400):
            yield talk.state(number)
            talk.leave(1)
            talk.come(said[number + 100])

    assert sent(full()) < 4 * length  # a hundred would be all of it


def test_what_is_learnt_about_a_long_message_is_sent_without_its_text() -> None:
    talk = Talk(*MANY, "x" * 200_000)

    def understood() -> Iterator[PublishedState]:
        yield talk.state(1)
        talk.change(len(MANY), " keywords")
        yield talk.state(2)

    assert sent(understood()) < 1000


def test_a_shorter_end_does_not_have_all_of_the_state_sent() -> None:
    talk = Talk(*MANY)
    assert sent(talk.state(revision) for revision in (10, 9)) < 100


def test_a_new_beginning_takes_the_room_of_what_left() -> None:
    talk = Talk(*MANY)

    def summarized() -> Iterator[PublishedState]:
        yield talk.state(1)
        talk.leave(10)
        yield talk.state(2)
        yield talk.state(3, "ten were summarized")

    assert sent(summarized()) < 100


def commit(published: PublishedState) -> Commit:
    return Commit(conversation_state=b"{}", silent_for=1.0, state=published, head=b"{}", order=b"[]")


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
    talk = Talk(*said[:100])
    whole = talk.state(0).length
    await mine.commit(commit(talk.state(0)))
    before = await bytes_received(redis)
    for number in range(1, 301):
        talk.leave(1)
        talk.come(said[number + 99])
        assert (await mine.commit(commit(talk.state(number)))).state_present
        assert read(await redis.get(KEYS.state) or b"") == (said[number : number + 100], number, "")
    assert 0 < await redis.pttl(KEYS.state) <= 3_600_000
    assert await bytes_received(redis) - before < 300 * whole // 10


FIRST = bytes(Talk(*MANY).state(1))
TOUCHED = [None, bytes(Talk(*MANY).state(9)), b"{}", b" " + FIRST, b" " * len(FIRST)]


@pytest.mark.engines
@pytest.mark.parametrize("touched", TOUCHED)
async def test_a_state_that_is_not_what_was_written_last_is_replaced_whole(redis: Redis, touched: bytes | None) -> None:
    mine, talk = await owned(redis), Talk(*MANY)
    await mine.commit(commit(talk.state(1)))
    await (redis.delete(KEYS.state) if touched is None else redis.set(KEYS.state, touched))
    talk.leave(1)
    talk.come("one more")
    moved = talk.state(2)
    assert not (await mine.commit(commit(moved))).state_present
    assert await redis.get(KEYS.state) == touched
    assert (await mine.commit(replace(commit(moved), head=b""))).state_present
    assert await redis.get(KEYS.state) == bytes(moved)


@pytest.mark.engines
async def test_a_patch_that_is_sent_again_is_not_applied_twice(redis: Redis) -> None:
    mine, talk = await owned(redis), Talk(*MANY)
    await mine.commit(commit(talk.state(1)))
    talk.leave(1)
    talk.come("one more")
    moved = commit(talk.state(2))
    unheard = copy(mine)  # as it is without the answer
    await mine.commit(moved)
    assert not (await unheard.commit(moved)).state_present
    assert read(await redis.get(KEYS.state) or b"") == ([*MANY[1:], "one more"], 2, "")


def test_a_state_tells_where_its_parts_are() -> None:
    published = StoredState(Talk("one", "two").state(3), gap=5, pad=2)
    assert bytes(published)[published.first :].startswith(b'"one","two"  ],')
    assert (len(bytes(published)), published.mark) == (published.length, b'],"revision":3}')
