"""Ages and silence are right only where Redis' clock and this machine's agree."""

from __future__ import annotations

import time

from redis.asyncio import Redis

from context_builder.storage.redis_availability import translated


async def clock_skew(redis: Redis) -> float:
    """Return how many seconds Redis' clock is ahead of this machine's, negative where it is behind.

    Raises :class:`~context_builder.errors.StoreUnavailable` when Redis does not answer.
    """
    before = time.time()
    async with translated():
        seconds, micros = await redis.time()
    return float(seconds + micros / 1e6 - (before + time.time()) / 2)
