"""This module reads the points of a session's summary, each with the messages behind it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import cast

from redis.asyncio import Redis

from context_builder.session.client import JsonObject
from context_builder.session.keys import Keys
from context_builder.session.summary.citation import explain
from context_builder.storage.redis_availability import translated


async def explained_points(redis: Redis, session_id: str) -> list[JsonObject]:
    """Return the points, oldest first; none of a session that is not known."""
    async with translated():
        fields = await cast("Awaitable[dict[bytes, bytes]]", redis.hgetall(Keys(session_id).checkpoint))
    return [point.wire() for point in explain({name.decode(): value for name, value in fields.items()})]
