"""A Redis that is full refuses what needs memory: what frees it works, and a running session loses nothing."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from redis.asyncio import Redis
from redis.exceptions import OutOfMemoryError

from context_builder.errors import StoreUnavailable
from context_builder.fleet.sleepers import SLEEPERS, Sleepers
from context_builder.session.client import SessionClient
from context_builder.session.keys import FORGOTTEN, SUMMARY_SEQS, Keys
from context_builder.session.store.registry import SessionRegistry
from tests.services.waiting import wait_until
from tests.session.conftest import HOSTED_TOO
from tests.session.live import Live
from tests.session.saying import spoken
from tests.session.store.test_registry import LATER, ended

pytestmark = pytest.mark.engines

KEYS = Keys("monday")


@asynccontextmanager
async def full(redis: Redis) -> AsyncIterator[None]:
    await redis.config_set("maxmemory", "1")  # byte: an empty one of an older version takes less than a MiB
    try:
        with pytest.raises(OutOfMemoryError):
            await redis.set("more", "")
        yield
    finally:
        await redis.config_set("maxmemory", "0")


async def test_a_session_is_forgotten(live: Live) -> None:
    await ended(live)
    running = await live.start("tuesday")
    async with full(live.redis):
        assert await SessionRegistry(live.redis).forget("monday") > 0
        await SessionRegistry(live.redis).forget("tuesday")
        assert await live.redis.keys("*monday*") == []
        assert await live.redis.hlen(FORGOTTEN) == 2
        with pytest.raises(Exception, match="forgotten"):
            await live.gone(running)


async def test_outlived_sessions_are_swept(live: Live) -> None:
    await ended(live)
    async with full(live.redis):
        assert await SessionRegistry(live.redis).sweep(LATER) == ["monday"]
        assert await live.redis.hget(SUMMARY_SEQS, "monday") == b"1"
        assert not await live.redis.exists(KEYS.checkpoint)


@HOSTED_TOO
async def test_a_running_session_keeps_its_lease_and_its_silence_clock(live: Live) -> None:
    await live.start()
    await live.say(1, 2)
    await live.shows(1, 2)
    async with full(live.redis):
        lease = await live.redis.get(KEYS.owner)
        await live.redis.expire(KEYS.owner, 8)
        live.clock.advance(5.0)

        async def is_silent() -> bool:
            return bool((await live.conversation_state()).get("silence"))

        await wait_until(is_silent, "it falls silent")
        for _ in range(3):
            await live.redis.delete(KEYS.conversation)
            await wait_until(is_silent, "the clock is published again")

        async def is_renewed() -> bool:
            return await live.redis.pttl(KEYS.owner) > 8_000

        await wait_until(is_renewed, "its lease is renewed")
        assert await live.redis.get(KEYS.owner) == lease
    await live.say(3)
    await live.shows(1, 2, 3)


async def test_the_silence_clocks_of_sleepers_are_kept(live: Live) -> None:
    await ended(live)
    await live.redis.zadd(SLEEPERS, {"monday": time.time()})
    sleepers = Sleepers(live.redis, "worker", 10)
    lost: list[str] = []

    async def wake(names: object) -> None:
        lost.extend(names)  # type: ignore[call-overload]

    async with full(live.redis):
        await sleepers._refresh_all(wake)
    await live.redis.delete(SLEEPERS)


async def test_what_is_there_can_be_read(live: Live) -> None:
    await live.start()
    await live.say(1)
    client, registry = SessionClient(live.redis, "monday"), SessionRegistry(live.redis)
    async with full(live.redis):
        assert [one.session_id for one in await registry.sessions()] == ["monday"]
        assert await registry.find("monday") is not None
        assert (await client.snapshot()).state == await client.remembered() == await client.state()
        assert (await client.next_number(), await client.ended()) == (2, None)
        with pytest.raises(StoreUnavailable, match="Redis is full"):
            await client.push(spoken(2))
