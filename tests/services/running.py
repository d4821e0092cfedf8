"""A real session on a real Redis, running beside the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
from redis.asyncio import Redis

from context_builder.analysis.analyst import Analyst
from context_builder.archive.archive import Archive
from context_builder.session.config import SessionConfig
from context_builder.session.session import Session, SessionDependencies
from context_builder.testing import InMemoryArchive, StubAnalyst
from tests.services.waiting import wait_until


def parts_of(
    analyst: Analyst | None = None, archive: Archive | None = None, *, last_resort: Analyst | None = None
) -> SessionDependencies:
    """The analyst, by default its own last resort, and an archive in memory; a token is four characters."""
    asked = analyst or StubAnalyst()
    return SessionDependencies(
        asked, last_resort or asked, archive or InMemoryArchive(), lambda text: len(text) // 4 + 1
    )


@asynccontextmanager
async def running(
    redis: Redis, session_id: str = "monday", parts: SessionDependencies | None = None, **rules: Any
) -> AsyncIterator[Session]:
    """The session, ready; stopped in the end."""
    session = Session(redis, session_id, SessionConfig(**{"tick": 0.05, **rules}), parts or parts_of())
    task = asyncio.create_task(session.serve(), name=f"session {session_id}")
    try:
        await wait_until(lambda: task.done() or session.ready.is_set(), "the session is ready")
        yield session
    finally:
        session.stop()
        await task


async def push(redis: Redis, *deliveries: bytes | dict[str, Any], session_id: str = "monday") -> None:
    """Hand over deliveries, the oldest first."""
    raw = (delivery if isinstance(delivery, bytes) else orjson.dumps(delivery) for delivery in deliveries)
    await redis.lpush(f"context_builder:{session_id}:input", *raw)  # type: ignore[misc]


async def state(redis: Redis, session_id: str = "monday") -> dict[str, Any]:
    """What is published."""
    published: dict[str, Any] = orjson.loads(await redis.get(f"context_builder:{session_id}:state") or b"{}")
    return published


def published(
    redis: Redis, predicate: Callable[[dict[str, Any]], object], session_id: str = "monday"
) -> Callable[[], Awaitable[dict[str, Any] | None]]:
    """For ``wait_until``: the published state once ``predicate`` holds for it."""

    async def look() -> dict[str, Any] | None:
        now = await state(redis, session_id)
        return now if now and predicate(now) else None

    return look
