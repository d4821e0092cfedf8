"""A knowledge store in a real PostgreSQL with our tables."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from context_builder.knowledge.store import KnowledgeStore
from context_builder.storage.database_errors import KNOWLEDGE_ERRORS
from context_builder.storage.sql_functions import PostgresFunctions


@pytest.fixture
async def knowledge(migrated_url: str) -> AsyncIterator[KnowledgeStore]:
    store = KnowledgeStore(PostgresFunctions(migrated_url, KNOWLEDGE_ERRORS))
    yield store
    await store.close()
