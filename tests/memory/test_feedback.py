"""Whether memories helped is kept with them."""

from __future__ import annotations

from datetime import UTC, datetime

import asyncpg
import pytest

from context_builder.memory.memory import Feedback, Memory, MemoryQuery, Rating
from context_builder.memory.postgres import PostgresMemory

pytestmark = pytest.mark.engines

NOW = datetime(2025, 1, 1, tzinfo=UTC)
BOAT = Memory("a", "boat noise at dawn")


async def feedback(memory: PostgresMemory, tenant: str = "lab") -> Feedback | None:
    (found,) = await memory.search(tenant, MemoryQuery("boat"))
    assert found.memory == BOAT
    return found.feedback


async def test_ratings_come_to_their_mean_and_outlive_being_remembered_again(memory: PostgresMemory) -> None:
    await memory.remember("lab", [BOAT])
    assert await feedback(memory) is None
    await memory.rate("lab", [Rating("a", 1.0, NOW), Rating("gone", 1.0, NOW)])
    await memory.rate("lab", [Rating("a", 0.0, NOW)])
    await memory.remember("lab", [BOAT])
    assert await feedback(memory) == Feedback(0.5, 2, NOW)


async def test_nobody_rates_another_tenants_memories(memory: PostgresMemory, database: asyncpg.Connection) -> None:
    await memory.remember("lab", [BOAT])
    await memory.rate("other", [Rating("a", 0.0, NOW)])
    assert await feedback(memory) is None
    await database.execute("SET ROLE context_builder_app")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await database.execute("SELECT context_memory_rate('lab', '[]')")
