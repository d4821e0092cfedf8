"""A sleeping session's conversation state is kept fresh for an hour after its last message; then it expires."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection

import pytest
from redis.asyncio import Redis

from context_builder.fleet.sleepers import KEPT, SLEEPERS, Sleepers
from context_builder.session.keys import Keys
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines

TTL = 500.0


async def test_it_is_kept_fresh_for_an_hour_after_the_last_message(redis: Redis) -> None:
    sleepers = Sleepers(redis, "worker", TTL)
    for session_id, silent in (("recent", KEPT - 600), ("old", KEPT + 1)):
        await sleepers.add(session_id, silent)
        keys = Keys(session_id)
        await redis.hset(keys.checkpoint, "revision", 1)
        await redis.set(keys.conversation, '{"time_since_last_message":0.0}', ex=3600)

    async def wake(lost: Collection[str]) -> None:
        raise AssertionError(lost)

    async def is_fresh() -> bool:
        return 0 < await redis.ttl(Keys("recent").conversation) <= TTL

    keeping = asyncio.create_task(sleepers.keep_fresh(wake))
    await wait_until(is_fresh, "the state of who spoke within the hour is refreshed")
    keeping.cancel()
    since = json.loads(await redis.get(Keys("recent").conversation))["time_since_last_message"]
    assert since == pytest.approx(KEPT - 600, abs=300)
    assert await redis.ttl(Keys("old").conversation) > TTL  # nobody prolongs it
    assert await redis.zrange(SLEEPERS, 0, -1) == [b"recent"]
