"""Recorded sessions on a real Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from context_builder.storage.redis import client_for
from tests.recording.witness import Recorded
from tests.services.redis_server import RedisServer


@pytest.fixture
async def live(redis: Redis, redis_server: RedisServer, tmp_path: Path) -> AsyncIterator[Recorded]:
    """Runs recorded sessions; afterwards they are stopped."""
    async with client_for(redis_server.url) as client:
        running = Recorded(client, redis, tmp_path / "monday.jsonl")
        yield running
        for session in list(running.tasks):
            session.stop()
        await asyncio.gather(*running.tasks.values(), return_exceptions=True)
        await running.writer.close()
