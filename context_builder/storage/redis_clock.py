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
    there = await redis_time(redis)
    return there - (before + time.time()) / 2


async def redis_time(redis: Redis) -> float:
    """Return the epoch seconds of Redis' clock, which is the same for all processes; a machine's own may be wrong.

    Raises :class:`~context_builder.errors.StoreUnavailable` when Redis does not answer.
    """
    async with translated():
        seconds, micros = await redis.time()
    return float(seconds + micros / 1e6)
