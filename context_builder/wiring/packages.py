"""The service of context packages for a command, which is started, asked once and over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

from context_builder.errors import ContextBuilderError
from context_builder.knowledge.service import PackageConfig, PackageService
from context_builder.knowledge.store import document_space
from context_builder.memory.memory import MemoryQuery
from context_builder.settings.settings import Settings
from context_builder.wiring.database import open_database
from context_builder.wiring.embedded import start_embeddings
from context_builder.wiring.events import event_relay
from context_builder.wiring.knowledge import knowledge_of, open_packages
from context_builder.wiring.servers import running_redis
from context_builder.wiring.stores import store_of

STARTING: Final = 5.0
"""Seconds that the database and the embedding engine may take to be there, as those that have to be started do."""

PATIENCE: Final = 5.0
"""Seconds for which every source is waited for: whoever types a command has more time than an agent."""


@asynccontextmanager
async def open_package_service(
    settings: Settings, tenant_id: str, intent: str | None = None
) -> AsyncIterator[PackageService]:
    """Open the service as the settings have it. Packages are cached in the Redis that they name, or in the embedded one
    if that runs, to which their events are relayed in the end. With an ``intent``, whose packages are to be built, what
    finds their sources is warmed up.
    """
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(settings))
        memory, _ = store_of(settings, database)
        stack.push_async_callback(memory.close)
        knowledge = knowledge_of(database.knowledge, retention_days=settings.record.retention)
        if (redis := await running_redis(settings)) is not None:
            stack.push_async_callback(redis.aclose)
            stack.push_async_callback(event_relay(settings, database.knowledge, redis, knowledge.record).relay_once)
        if intent is not None:
            with suppress(ContextBuilderError, TimeoutError):  # the package says what was not there
                async with asyncio.timeout(STARTING):
                    await start_embeddings(settings)
                    await memory.search(document_space(tenant_id), MemoryQuery(intent, 1))
        config = PackageConfig(retrieval_time=PATIENCE, weights=settings.weights)
        yield await stack.enter_async_context(open_packages(knowledge, memory, redis, settings.services, config))
