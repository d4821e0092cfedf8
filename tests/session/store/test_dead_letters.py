"""Poison: what cannot be a message is kept with its reason, counted, and never stops the queue."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from typing import Any, cast

import orjson
import pytest
from redis.asyncio import Redis

from context_builder.clock import SystemClock
from context_builder.errors import SessionIdError, StoreError
from context_builder.session.keys import Keys
from context_builder.session.store import dead_letters
from context_builder.session.store.dead_letters import FOREIGN, DeadLetter, DeadLetters, without_words
from context_builder.session.store.deliveries import CutDelivery
from tests.services.running import published, push, running, state
from tests.services.waiting import wait_until
from tests.session.saying import spoken

pytestmark = pytest.mark.engines

ACCEPTED: list[dict[str, Any]] = [
    {"speaker": "Alice", "text": "without a number"},
    {"speaker": "Alice", "text": "a null number", "message_number": None},
    {"speaker": "Alice", "text": "a number as text", "message_number": "42"},
    {"speaker": "Alice", "text": "the largest number", "message_number": 2**53 - 1},
    {"speaker": "Alice", "text": "number zero", "message_number": 0},
    {"text": "without a speaker", "message_number": 7},
    {"text": "everything else wrong", "timestamp": 5, "confidence": "high", "metadata": [], "session_id": "other"},
]

POISON: dict[bytes, str] = {
    b"\xff\xfe\x00": "not UTF-8",
    b'{"text": "caf\xe9"}': "not UTF-8",
    b"hello": "not JSON",
    b'{"text": "cut': "not JSON",
    b"": "not JSON",
    b'["text"]': "not a JSON object",
    b"null": "not a JSON object",
    b"{}": "text is missing",
    b'{"text": null}': "text is missing",
    b'{"text": " \\n\\t "}': "text is blank",
    b'{"text": 42}': "text is not a string",
    b'{"text": ["hello"]}': "text is not a string",
    b'{"text": "hello", "message_number": -1}': "message_number is outside 0 to 2^53-1",
    b'{"text": "hello", "message_number": 9007199254740992}': "message_number is outside 0 to 2^53-1",
    b'{"text": "hello", "message_number": "9007199254740992"}': "message_number is outside 0 to 2^53-1",
    b'{"text": "hello", "message_number": 1.5}': "message_number is not a whole number",
    b'{"text": "hello", "message_number": "many"}': "message_number is not a whole number",
    b'{"text": "a lone \\ud800 surrogate"}': "invalid Unicode",
    b'{"text": "hello", "speaker": "\\udfff"}': "invalid Unicode",
    b'{"text": "' + b"x" * 262_144 + b'"}': "larger than 262144 bytes",
    b'{"a":' * 20_000: "nested too deeply",
}


async def test_what_the_contract_accepts_is_heard(redis: Redis) -> None:
    async with running(redis):
        await push(redis, *ACCEPTED)
        heard = await wait_until(
            published(redis, lambda s: s["received_messages"] == len(ACCEPTED)), "all messages are taken in"
        )
    assert [entry["text"] for entry in heard["raw_recent_buffer"]] == [fields["text"] for fields in ACCEPTED]
    assert [entry["message_number"] for entry in heard["raw_recent_buffer"]] == [None, None, 42, 2**53 - 1, 0, 7, None]
    assert heard["raw_recent_buffer"][5]["speaker"] == "Unknown"
    assert heard["dead_letters"] == 0


async def test_poison_is_kept_whole_with_its_reason_and_never_stops_the_queue(redis: Redis) -> None:
    async with running(redis):
        for number, delivery in enumerate(POISON, start=1):
            await push(redis, delivery, spoken(number))
        heard = await wait_until(
            published(redis, lambda s: s["received_messages"] == len(POISON)), "what lies behind the poison is heard"
        )
        assert heard["dead_letters"] == len(POISON)
        assert [entry["message_number"] for entry in heard["raw_recent_buffer"]] == [*range(1, len(POISON) + 1)]
        assert await redis.llen("context_builder:monday:input") == 0
    kept = await DeadLetters(redis, "monday").all()
    assert {letter.raw: letter.reason for letter in kept} == POISON
    assert all(letter.is_whole for letter in kept)


async def test_the_newest_are_kept_and_all_are_counted(redis: Redis) -> None:
    async with running(redis, dead_letters_max=3):
        await push(redis, *(b"poison %d" % n for n in range(10)))
        await wait_until(published(redis, lambda s: s["dead_letters"] == 10), "all ten are counted")
        await push(redis, b"poison 10")
        await wait_until(published(redis, lambda s: s["dead_letters"] == 11), "another one is counted")
    assert [letter.raw for letter in await DeadLetters(redis, "monday").all()] == [
        b"poison 8",
        b"poison 9",
        b"poison 10",
    ]


async def test_their_room_is_bounded_but_the_newest_always_stays(redis: Redis) -> None:
    async with running(redis, dead_letters_bytes=1000):
        await push(redis, *(b"x" * 300 for _ in range(5)))
        await wait_until(published(redis, lambda s: s["dead_letters"] == 5), "five are counted")
        assert await redis.llen("context_builder:monday:dead") == 2
        await push(redis, b"y" * 5000)
        await wait_until(published(redis, lambda s: s["dead_letters"] == 6), "a larger one is counted")
        assert await _room(redis) == await _counted_room(redis)
    assert [letter.raw for letter in await DeadLetters(redis, "monday").all()] == [b"y" * 5000]


async def test_the_room_of_what_is_struck_is_free_again(redis: Redis) -> None:
    async with running(redis):
        refused = {"corrects": 1, "text": "words " * 100, "speaker": "Consilience"}
        await push(redis, spoken(1), refused, b"poison", {"strikes": 1})
        await wait_until(
            published(redis, lambda s: s["dead_letters"] == 2 and not s["raw_recent_buffer"]), "it is struck"
        )
        await push(redis, spoken(2), {**refused, "corrects": 2})
        await wait_until(published(redis, lambda s: s["dead_letters"] == 3), "another one is refused")
        await push(redis, {"strikes": 2})
        await wait_until(published(redis, lambda s: not s["raw_recent_buffer"]), "it is struck, too")
    assert 0 < await _room(redis) == await _counted_room(redis) < 500


async def test_a_huge_delivery_leaves_its_beginning_and_its_size(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "KEPT_BYTES", 1000)
    async with running(redis, max_message_bytes=100):
        await push(redis, b"x" * 5000)
        await wait_until(published(redis, lambda s: s["dead_letters"] == 1), "it is counted")
    letters = DeadLetters(redis, "monday")
    letter = await letters.get(1)
    assert (letter.raw, letter.size, letter.is_whole) == (b"x" * 1000, 5000, False)
    with pytest.raises(StoreError, match="only 1000 of its 5000 bytes were kept"):
        await letters.requeue(letter)


async def test_what_is_put_back_becomes_a_message_once_the_reason_is_gone(redis: Redis) -> None:
    long = json.dumps(spoken(1, "words " * 100)).encode()
    letters = DeadLetters(redis, "monday")
    async with running(redis, max_message_bytes=200):
        await push(redis, long, b"poison")
        await wait_until(published(redis, lambda s: s["dead_letters"] == 2), "both are dead letters")
    async with running(redis, max_message_bytes=2000):
        for letter in await letters.all():
            assert await letters.requeue(letter)
            assert not await letters.requeue(letter)
        heard = await wait_until(published(redis, lambda s: s["dead_letters"] == 3), "poison is a dead letter again")
    assert [entry["message_number"] for entry in heard["raw_recent_buffer"]] == [1]
    assert [letter.raw for letter in await letters.all()] == [b"poison"]
    assert await _room(redis) == await _counted_room(redis)


async def test_one_of_two_that_are_alike_is_put_back_alone(redis: Redis) -> None:
    letter = DeadLetter.of(b"poison", "not JSON", SystemClock().now())
    await redis.lpush("context_builder:monday:dead", letter.encode(), letter.encode())  # type: ignore[misc]
    letters = DeadLetters(redis, "monday")
    assert await letters.requeue(letter)
    assert len(await letters.all()) == 1
    assert await redis.llen("context_builder:monday:input") == 1  # type: ignore[misc]


async def test_numbers_count_from_the_oldest_and_stay_when_more_come(redis: Redis) -> None:
    letters = DeadLetters(redis, "monday")
    for n in range(3):
        letter = DeadLetter.of(b"poison %d" % n, "not JSON", SystemClock().now())
        await redis.lpush("context_builder:monday:dead", letter.encode())  # type: ignore[misc]
        assert (await letters.get(1)).raw == b"poison 0"
    assert (await letters.get(3)).raw == b"poison 2"
    for absent in (0, -1, 4):
        with pytest.raises(StoreError, match=f"has no dead letter {absent}"):
            await letters.get(absent)


@pytest.mark.parametrize("changed", [{"reason": 5}, {"reason": None}, {"time": "now"}, {"raw": [1]}, {"size": "x"}])
def test_a_letter_of_another_form_says_that_another_program_wrote_it(changed: dict[str, object]) -> None:
    letter = {"reason": "not JSON", "time": 1.5, "raw": "cG9pc29u", "size": 6, **changed}
    assert DeadLetter.decode(orjson.dumps(letter)).reason == FOREIGN


async def test_what_is_refused_by_the_memory_is_not_put_back_beside_a_damaged_summary(redis: Redis) -> None:
    letters = DeadLetters(redis, "monday", "memory")
    await redis.hset(Keys("monday").checkpoint, "summary", "[]")  # type: ignore[misc]
    with pytest.raises(StoreError, match="field summary is damaged"):
        await letters.requeue(DeadLetter("refused", 1.5, b"x", 1))
    await redis.delete(Keys("monday").checkpoint)


def test_no_id_reaches_another_sessions_letters(redis: Redis) -> None:
    with pytest.raises(SessionIdError):
        DeadLetters(redis, "monday/input")


async def test_a_session_that_heard_nothing_but_poison_has_an_empty_buffer(redis: Redis) -> None:
    async with running(redis):
        await push(redis, *POISON)
        await wait_until(published(redis, lambda s: s["dead_letters"] == len(POISON)), "all are dead letters")
        assert (await state(redis))["raw_recent_buffer"] == []


async def _room(redis: Redis) -> int:
    """Bytes that the letters take."""
    stored: list[bytes] = await redis.lrange("context_builder:monday:dead", 0, -1)  # type: ignore[misc]
    return sum(map(len, stored))


async def _counted_room(redis: Redis) -> int:
    """Bytes that the session believes they take."""
    return int(await redis.hget("context_builder:monday:checkpoint", "dead_bytes") or 0)  # type: ignore[misc]


def test_the_beginning_of_a_large_delivery_may_be_of_a_correction_and_goes_with_what_is_struck() -> None:
    whole = b'{"text": "Zanzibar and more.", "corrects": 2}'
    cut = CutDelivery.of(whole[:20], len(whole), b"")
    letters = [DeadLetter.of(one, "too large", SystemClock().now()).encode() for one in (cut, whole)]
    kept = [DeadLetter.decode(without_words(one, {7}, {7})).raw for one in letters]
    assert kept == [b"", whole]
    assert DeadLetter.decode(without_words(letters[1], {2}, {2})).raw == b""


async def test_what_another_program_left_among_dead_letters_is_shown_as_such(redis: Redis) -> None:
    letters = DeadLetters(redis, "s-1")
    for foreign in (b"{}", b"[]", b"\xff", b'{"reason": "x", "time": 1e300, "raw": ""}'):
        await cast("Awaitable[int]", redis.rpush(Keys("s-1").dead, foreign))
    found = await letters.all()
    assert [(one.reason, one.is_whole) for one in found] == [(FOREIGN, False)] * 4
