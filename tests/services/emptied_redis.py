"""A client of the tests' Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from redis.asyncio import Redis

from context_builder.storage.redis import client_for
from context_builder.storage.redis_availability import translated, until_available
from tests.services.redis_server import RedisServer


@asynccontextmanager
async def emptied(server: RedisServer) -> AsyncIterator[Redis]:
    """A client of the server, from which all keys were deleted.

    The project's own kind of client: redis-py's time limits may swallow a cancellation, and a session would never end.
    """
    async with client_for(server.url) as client:
        async for attempt in until_available():  # a machine that stands still for seconds is not what is tested
            with attempt:
                async with translated():
                    await client.flushall()
        yield client
