"""Calls of SQL functions over a pool of connections."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from context_builder.knowledge.store import KnowledgeStore
from context_builder.storage.database_errors import KNOWLEDGE_ERRORS
from context_builder.storage.sql_functions import PostgresFunctions

pytestmark = pytest.mark.engines


@pytest.mark.parametrize("connections", [1, 3])
async def test_no_more_connections_are_opened_than_there_may_be(migrated_url: str, connections: int) -> None:
    functions = PostgresFunctions(migrated_url, KNOWLEDGE_ERRORS, connections=connections)
    observer = await asyncpg.connect(migrated_url)
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    try:
        before = await observer.fetchval(others)
        store = KnowledgeStore(functions)
        await asyncio.gather(*(store.quality("lab", ["artifact:none"]) for _ in range(40)))
        assert await observer.fetchval(others) - before == connections
    finally:
        await observer.close()
        await functions.close()
