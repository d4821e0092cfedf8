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
from context_builder.storage.multiplexed import MultiplexedRedis, PackedStart
from context_builder.storage.redis import client_for
from tests.services.link import Link
from tests.services.redis_server import RedisServer


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


async def test_an_answer_that_is_late_is_told_without_waiting_for_the_connection(
    shared: MultiplexedRedis, redis: Redis
) -> None:
    ping = script(shared, "arrived").bound(["none"], [])
    assert await ping([""], 5) == []
    await redis.client_pause(600)
    patient = asyncio.ensure_future(ping([""], 5))
    with pytest.raises(TimeoutError):
        await ping([""], 0.1)
    assert not patient.done()
    assert await patient == []


async def test_a_script_that_was_forgotten_is_given_again_where_its_start_is_packed(shared: MultiplexedRedis) -> None:
    ping = script(shared, "arrived").bound(["none"], [])
    await shared.script_flush()
    assert await asyncio.gather(ping([""], 5), ping([""], 5)) == [[], []]


async def test_a_packed_start_makes_the_same_command(shared: MultiplexedRedis) -> None:
    start = PackedStart.of("SET", "key")
    assert await shared.execute_command(start, "välue", "PX", 60_000)
    assert await shared.get("key") == "välue".encode()
    assert 0 < await shared.pttl("key") <= 60_000


async def test_who_waits_when_the_client_is_closed_is_told(
    shared: MultiplexedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(shared, "_connected", never)
    ping = script(shared, "arrived").bound(["none"], [])
    waiting = [asyncio.ensure_future(ping([""], 60)) for _ in range(2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await shared.aclose()
    await asyncio.wait(waiting, timeout=5)
    assert all(one.cancelled() for one in waiting)


async def test_a_connection_that_the_network_lost_is_told_from_a_redis_that_is_slow(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multiplexed, "SILENT_SECONDS", 60.0)
    async with (
        Link(redis_server.port).opened() as link,
        client_for(f"redis://127.0.0.1:{link.port}/0") as client,
        client_for(redis_server.url) as direct,
    ):
        shared = MultiplexedRedis(client)
        try:
            await asyncio.gather(shared.ping(), shared.ping())
            link.strand()
            async with asyncio.timeout(20):
                lost = await asyncio.gather(shared.ping(), shared.ping(), return_exceptions=True)
                assert any(isinstance(answer, RedisConnectionError) for answer in lost)
                assert await shared.ping()
            await direct.client_pause(1_000)
            assert await shared.ping()
        finally:
            await shared.aclose()
