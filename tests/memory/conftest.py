"""A memory in a real PostgreSQL with our tables."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from context_builder.memory.sql_memory import PostgresMemory
from tests.memory.vectors import LetterEmbedder


@pytest.fixture
async def memory(migrated_url: str) -> AsyncIterator[PostgresMemory]:
    """Full text alone."""
    memory = PostgresMemory(migrated_url)
    yield memory
    await memory.close()


@pytest.fixture
def embedder() -> LetterEmbedder:
    return LetterEmbedder()


@pytest.fixture
async def hybrid(migrated_url: str, embedder: LetterEmbedder) -> AsyncIterator[PostgresMemory]:
    """Full text and embeddings."""
    memory = PostgresMemory(migrated_url, embedder)
    yield memory
    await memory.close()
