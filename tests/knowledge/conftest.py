"""A knowledge store in a real PostgreSQL with our tables."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from context_builder.database.postgres import PostgresDatabase
from context_builder.knowledge.store import KnowledgeStore


@pytest.fixture
async def knowledge(migrated_url: str) -> AsyncIterator[KnowledgeStore]:
    store = KnowledgeStore(PostgresDatabase(migrated_url))
    yield store
    await store.close()
