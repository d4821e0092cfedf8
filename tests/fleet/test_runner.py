"""When a runner takes sessions again after its Redis was away."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from redis.asyncio import Redis

from context_builder.fleet import runner as runner_module
from context_builder.fleet.runner import OWNERS_FIRST, SessionRunner
from context_builder.session.keys import SESSIONS
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.engines


def runner_of(redis: Redis) -> SessionRunner:
    unused: Any = None
    return SessionRunner(redis, unused, unused, 600.0)


async def seconds_to_open(runner: SessionRunner) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await runner.open()
    return loop.time() - began


async def test_a_redis_that_was_full_or_out_of_reach_is_used_at_once(redis: Redis) -> None:
    runner = runner_of(redis)
    await runner.open()
    await redis.zadd(SESSIONS, {"monday": 1})
    runner.hand_over()
    assert await seconds_to_open(runner) < OWNERS_FIRST / 2


async def test_who_hands_over_again_and_again_pauses_longer_each_time(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "LONGEST_PAUSE", 1.0)
    runner = runner_of(redis)
    monkeypatch.setattr(runner, "_running", {"monday": StubSession()})
    await runner.open()
    runner.hand_over()
    first = await seconds_to_open(runner)
    runner.hand_over()
    assert first >= 0.5
    assert await seconds_to_open(runner) >= 1.0
    monkeypatch.setattr(runner_module, "STEADY", -1.0)
    runner.hand_over()
    assert await seconds_to_open(runner) < 0.5


class StubSession:
    """Is handed over at once."""

    def hand_over(self) -> None:
        pass


async def test_in_a_redis_that_was_started_again_owners_come_first(redis: Redis, redis_server: RedisServer) -> None:
    runner = runner_of(redis)
    await runner.open()
    await redis.zadd(SESSIONS, {"monday": 1})
    runner.hand_over()
    redis_server.kill()
    redis_server.start()
    await redis.connection_pool.disconnect()
    assert await seconds_to_open(runner) >= OWNERS_FIRST
