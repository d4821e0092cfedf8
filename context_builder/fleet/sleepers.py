"""Sleeping sessions run nowhere; one worker of the fleet keeps the conversation states of all of them fresh.

That ends an hour after a session's last message: its conversation state then expires, as when nobody runs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Final

import structlog
from redis.asyncio import Redis

from context_builder.errors import StoreError, StoreUnavailable
from context_builder.session.keys import SLEEPERS
from context_builder.session.store.scripts import script
from context_builder.storage.redis import redis_time
from context_builder.storage.redis_availability import translated

POSTPONED: Final = "context_builder_fleet:postponed"
"""Sorted set of sessions that sleep although an archive or memory that is away lacks something of them, by the time of
the next try in seconds of Redis' clock. Lives :data:`KEPT` seconds after the last one."""

TRY_AGAIN: Final = 300.0
"""Seconds until a session is run again for a receiver that was away."""

KEEPER: Final = "context_builder_fleet:keeper"
"""String: the worker that keeps their conversation states fresh. Lives :data:`KEEPER_MS`."""

KEPT: Final = 3600.0
"""Seconds after its last message that a sleeping session has a conversation state."""

INTERVAL: Final = 1.0
"""Seconds between two refreshes of a conversation state."""

KEEPER_MS: Final = 3000
PART: Final = 500
"""Sleepers that one script call looks at: under 5 ms, in which Redis does nothing else."""

log = structlog.get_logger(__name__)


class Sleepers:
    """The sessions that sleep; ``worker`` names this worker, and a conversation state lives for ``ttl`` seconds."""

    def __init__(self, redis: Redis, worker: str, ttl: float) -> None:
        self._redis = redis
        self._worker = worker
        self._ttl_ms = int(ttl * 1000)
        self._refresh = script(redis, "sleepers", "context_builder.fleet")

    async def add(self, session_id: str, silent_for: float) -> None:
        """Note that the session, in which somebody spoke so many seconds ago, sleeps."""
        now = await redis_time(self._redis)
        async with translated():  # one by one, because a pipeline takes a connection, and many sleep together
            await self._redis.zadd(SLEEPERS, {session_id: now - silent_for})
            await self._redis.expire(SLEEPERS, int(KEPT))

    async def postpone(self, session_id: str) -> None:
        """Let nobody run the session for what its receivers did not take, for :data:`TRY_AGAIN` seconds."""
        seconds = int(await redis_time(self._redis))
        async with translated():
            await self._redis.zremrangebyscore(POSTPONED, "-inf", seconds)
            await self._redis.zadd(POSTPONED, {session_id: seconds + TRY_AGAIN})
            await self._redis.expire(POSTPONED, int(KEPT))

    async def keep_fresh(self, wake: Callable[[Collection[str]], Awaitable[None]]) -> None:
        """Refresh conversation states for ever, unless another worker does.

        Those that expired while no worker was there are published again by their sessions, which are given to ``wake``.
        """
        while True:
            try:
                await self._refresh_all(wake)
            except StoreUnavailable:
                pass  # which the worker tells
            except StoreError as error:
                log.warning("fleet.sleepers_not_refreshed", error=str(error))
            await asyncio.sleep(INTERVAL)

    async def _refresh_all(self, wake: Callable[[Collection[str]], Awaitable[None]]) -> None:
        first, sleepers = 0, 1
        while first < sleepers:
            args: list[str | int | float] = [self._worker, KEEPER_MS, self._ttl_ms, KEPT]
            async with translated():
                answer = await self._refresh(keys=[KEEPER, SLEEPERS], args=[*args, first, first + PART - 1])
            _, sleepers, lost = answer
            if lost:
                await wake([session_id.decode() for session_id in lost])
            first += PART
