"""A delivery of many megabytes on a slow network becomes a dead letter, and what follows is seen at once."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest
from redis.asyncio import Redis

from context_builder.session.config import SessionConfig
from context_builder.session.host import open_host
from context_builder.session.keys import Keys
from context_builder.session.store.dead_letters import DeadLetters
from context_builder.session.store.deliveries import BEGINNING_BYTES
from context_builder.storage.redis import client_for
from tests.services.link import Link
from tests.services.redis_server import RedisServer
from tests.session.live import Live
from tests.session.saying import raw, spoken

pytestmark = pytest.mark.engines

SIZE = 24_000_000
PACE = 0.04
"""1.6 MB a second: all of it would take 15 s."""


@pytest.mark.parametrize("hosted", [True, False])
async def test_what_follows_is_seen_at_once(redis: Redis, redis_server: RedisServer, hosted: bool) -> None:
    async with AsyncExitStack() as stack:
        link = await stack.enter_async_context(Link(redis_server.port, pace=PACE).opened())
        client = await stack.enter_async_context(client_for(f"redis://127.0.0.1:{link.port}/0"))
        host = await stack.enter_async_context(open_host(client, SessionConfig(tick=0.1))) if hosted else None
        await _check(Live(client, redis, host), redis)


async def _check(live: Live, redis: Redis) -> None:
    session = await live.start(tick=0.1)
    await live.say(1)
    await live.shows(1)
    await redis.lpush(Keys("monday").input, b"x" * SIZE, raw(spoken(2)))
    await live.shows(1, 2)
    (letter,) = await DeadLetters(redis, "monday").all()
    assert (letter.size, len(letter.raw)) == (SIZE, BEGINNING_BYTES)
    assert letter.reason.startswith("larger than")
    assert await redis.llen(Keys("monday").input) == 0
    await live.stop(session)
