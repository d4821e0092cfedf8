"""Sessions that reach a real Redis over a link that may fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from context_builder.engines.engine import LOOPBACK
from context_builder.storage.redis import client_for
from tests.faults.forgetful import ForgetfulRedis
from tests.services.link import Link
from tests.services.redis_server import RedisServer
from tests.session.live import Live


@pytest.fixture
async def link(redis: Redis, redis_server: RedisServer) -> AsyncIterator[Link]:
    """The network between the sessions and Redis."""
    async with Link(redis_server.port).opened() as link:
        yield link


@pytest.fixture
async def live(link: Link, redis_server: RedisServer) -> AsyncIterator[Live]:
    """Runs sessions over the link; pushes to Redis and reads it directly. Stopped in the end."""
    direct = Redis.from_url(redis_server.url, retry=Retry(NoBackoff(), 3))  # tests restart Redis
    async with client_for(f"redis://{LOOPBACK}:{link.port}/0") as client, direct:
        running = Live(client, direct)
        yield running
        for session in list(running.tasks):
            session.stop()
        await asyncio.gather(*running.tasks.values(), return_exceptions=True)


@pytest.fixture
def forgetful(engine_folder: Path, tmp_path: Path) -> ForgetfulRedis:
    return ForgetfulRedis(engine_folder / f"forgetful-{tmp_path.name}")
