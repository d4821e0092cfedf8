"""The events of context packages are relayed, and the record kept in order, as long as a server runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from redis.asyncio import Redis

from context_builder.database.database import Database
from context_builder.knowledge.events import EventRelay
from context_builder.knowledge.record import PackageRecord
from context_builder.settings.settings import Settings


@asynccontextmanager
async def relaying_events(
    settings: Settings, database: Database, redis: Redis, record: PackageRecord
) -> AsyncIterator[None]:
    """Relay events in the block; should the relay die, the block is cancelled, and its error raised."""
    relay = event_relay(settings, database, redis, record)
    await relay.startup()
    block = asyncio.current_task()
    task = asyncio.create_task(relay.run(), name="package events")

    def end_block(done: asyncio.Task[None]) -> None:
        if block is not None and not done.cancelled() and done.exception() is not None:
            block.cancel()

    task.add_done_callback(end_block)
    try:
        yield
    finally:
        await relay.shutdown()
        await task


def event_relay(settings: Settings, database: Database, redis: Redis, record: PackageRecord) -> EventRelay:
    """Return a relay as the settings have it."""
    tenant_id = settings.memory.tenant_id
    return EventRelay(database, redis, record, tenant_id=tenant_id, events_max=settings.record.events_max)
