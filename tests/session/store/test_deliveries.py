"""The lists of many sessions are read together, and one's fault or size is not another's."""

from __future__ import annotations

import asyncio

import pytest
from redis.asyncio import Redis

from context_builder.errors import StoreError, StoreUnavailable, WrongKeyType
from context_builder.session.keys import Keys
from context_builder.session.store.deliveries import BEGINNING_BYTES, CutDelivery, ListRead, ListReader, sha1_of
from context_builder.storage.multiplexed import MultiplexedRedis
from tests.services.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.engines


async def read(reader: ListReader, session_id: str) -> ListRead:
    keys = Keys(session_id)
    return await reader.read(keys.input, keys.checkpoint, 10, "right")


async def test_lists_that_are_wanted_together_are_read_with_one_script(redis: Redis) -> None:
    names = [f"session-{number}" for number in range(20)]
    for name in names:
        await redis.lpush(Keys(name).input, name)
        await redis.hset(Keys(name).checkpoint, mapping={"position": name, "revision": 3, "by": "me"})
    reader = ListReader(redis)
    await read(reader, "unknown")  # Redis knows the script now
    await redis.config_resetstat()
    answers = await asyncio.gather(*(read(reader, name) for name in names))
    assert answers == [ListRead([name.encode()], name.encode(), 3, b"me") for name in names]
    assert (await redis.info("commandstats"))["cmdstat_evalsha"]["calls"] == 1


async def test_a_list_of_another_type_fails_its_own_reader_alone(redis: Redis) -> None:
    await redis.set(Keys("broken").input, "text")
    await redis.set(Keys("worse").checkpoint, "text")
    await redis.lpush(Keys("whole").input, "said")
    reader = ListReader(redis)
    broken, whole, worse = await asyncio.gather(
        *(read(reader, name) for name in ("broken", "whole", "worse")), return_exceptions=True
    )
    assert isinstance(broken, WrongKeyType)
    assert isinstance(worse, WrongKeyType)
    assert isinstance(whole, ListRead)
    assert whole.items == [b"said"]


async def test_a_checkpoint_that_somebody_broke_fails_its_own_reader_alone(redis: Redis) -> None:
    await redis.hset(Keys("broken").checkpoint, "revision", "many")
    await redis.lpush(Keys("whole").input, "said")
    reader = ListReader(redis)
    broken, whole = await asyncio.gather(*(read(reader, name) for name in ("broken", "whole")), return_exceptions=True)
    assert isinstance(broken, StoreError)
    assert "broken:checkpoint" in str(broken)
    assert isinstance(whole, ListRead)
    assert (await read(reader, "whole")).items == [b"said"]


async def test_no_list_is_cut_because_others_are_read_with_it(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("context_builder.session.store.deliveries.READ_ITEMS", 10)
    monkeypatch.setattr("context_builder.session.store.deliveries.READ_BYTES", 100)
    lists = {"one": ["a" * 90], "two": ["b"] * 9, "three": ["c"] * 9, "four": ["d"]}
    for name, items in lists.items():
        await redis.lpush(Keys(name).input, *items)
    reader = ListReader(redis)
    answers = await asyncio.gather(*(read(reader, name) for name in lists))
    assert [len(answer.items) for answer in answers] == [len(items) for items in lists.values()]


async def test_who_waits_hears_that_reading_was_ended(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("context_builder.session.store.deliveries.MOST_LISTS", 1)
    shared = MultiplexedRedis(redis)
    reader = ListReader(shared)
    await redis.execute_command("CLIENT", "PAUSE", 600_000, "WRITE")  # scripts, but not UNPAUSE
    waiting = [asyncio.create_task(read(reader, name)) for name in ("first", "second")]
    try:
        await wait_until(lambda: len(reader._wanted) == 1 and not shared._waiting, "one is sent, and one waits")
        await shared.aclose()
        outcomes = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), PATIENCE)
    finally:
        await redis.execute_command("CLIENT", "UNPAUSE")
    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 2


async def test_what_is_too_large_to_be_read_together_is_read_one_after_the_other(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("context_builder.session.store.deliveries.READ_BYTES", 25)
    names = ["one", "two", "three"]
    for name in names:
        await redis.lpush(Keys(name).input, "a" * 20, "b" * 20)
    reader = ListReader(redis)
    answers = await asyncio.gather(*(read(reader, name) for name in names))
    assert [answer.items for answer in answers] == [[b"a" * 20]] * 3


async def test_who_is_cancelled_leaves_the_others_their_answers(redis: Redis) -> None:
    await redis.lpush(Keys("whole").input, "said")
    reader = ListReader(redis)
    cancelled, whole = (asyncio.create_task(read(reader, name)) for name in ("cancelled", "whole"))
    await asyncio.sleep(0)
    cancelled.cancel()
    assert (await whole).items == [b"said"]


async def test_a_redis_that_is_away_is_told_to_all(redis: Redis) -> None:
    reader = ListReader(Redis(port=1, retry=None))
    answers = await asyncio.gather(*(read(reader, name) for name in ("one", "two")), return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 2


async def test_of_an_item_that_is_too_large_the_beginning_is_read_and_what_follows_too(redis: Redis) -> None:
    large = b"x" * 200_000
    await redis.lpush(Keys("monday").input, large, "said")
    reader, keys = ListReader(redis), Keys("monday")
    cut, said = (await reader.read(keys.input, keys.checkpoint, 10, "right", largest=150_000)).items
    assert isinstance(cut, CutDelivery)
    assert (cut, cut.size, cut.sha1) == (large[:BEGINNING_BYTES], len(large), sha1_of(large))
    assert said == b"said"
    whole = (await reader.read(keys.input, keys.checkpoint, 10, "right", largest=200_000)).items
    assert whole == [large, b"said"]
