"""Commands of many callers share a few connections, and none of them suffers from another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from context_builder.session.store.scripts import script
from context_builder.storage import multiplexed
from context_builder.storage.multiplexed import MultiplexedRedis


@pytest.fixture
async def shared(redis: Redis) -> AsyncIterator[MultiplexedRedis]:
    one = MultiplexedRedis(redis, lanes=1)  # so that what is sent together goes together
    yield one
    await one.aclose()


async def test_a_command_that_is_refused_leaves_those_sent_with_it_alone(shared: MultiplexedRedis) -> None:
    key = "list"
    answers = await asyncio.gather(
        shared.rpush(key, "a"),
        shared.get(key),  # a list is no string
        shared.rpush(key, "b"),
        shared.expire(key, 60),
        return_exceptions=True,
    )
    assert answers[0] == 1
    assert isinstance(answers[1], ResponseError)
    assert answers[2:] == [2, True]


async def test_all_that_a_silent_connection_was_sent_is_told_and_the_next_takes_another(
    shared: MultiplexedRedis, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multiplexed, "SILENT_SECONDS", 0.1)
    await redis.client_pause(1_000)
    silent = await asyncio.gather(*(shared.ping() for _ in range(3)), return_exceptions=True)
    monkeypatch.undo()
    assert all(isinstance(error, RedisConnectionError) for error in silent)
    assert await shared.ping()


async def test_a_script_that_redis_does_not_know_is_given_to_it(shared: MultiplexedRedis) -> None:
    await shared.script_flush()
    arrived = script(shared, "arrived")
    assert await asyncio.gather(arrived(["none"]), arrived(["none"])) == [[], []]
