"""Whether memories helped is kept with them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from context_builder.memory.memory import Memory, MemoryFeedback, MemoryQuery, Rating
from context_builder.memory.sql_memory import PostgresMemory

pytestmark = pytest.mark.engines

NOW = datetime(2025, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
BOAT = Memory("a", "boat noise at dawn")


async def feedback(memory: PostgresMemory, tenant: str = "lab") -> MemoryFeedback | None:
    (found,) = await memory.search(tenant, MemoryQuery("boat"))
    assert found.memory == BOAT
    return found.feedback


async def test_the_latest_ratings_of_all_users_come_to_their_mean(memory: PostgresMemory) -> None:
    await memory.remember("lab", [BOAT])
    assert await feedback(memory) is None
    await memory.rate("lab", [Rating("a", 1.0, NOW), Rating("gone", 1.0, NOW)])
    for score in (1.0, 0.3, 0.0):
        await memory.rate("lab", [Rating("a", score, LATER, "ann"), Rating("a", 0.5, NOW, "bob")])
    await memory.remember("lab", [BOAT])
    assert await feedback(memory) == MemoryFeedback(0.5, 3, LATER)


async def test_of_very_many_who_rate_the_newest_count(memory: PostgresMemory) -> None:
    await memory.remember("lab", [BOAT])
    await memory.rate("lab", [Rating("a", 0.0, NOW, f"early {n}") for n in range(50)])
    await memory.rate("lab", [Rating("a", 1.0, LATER, f"late {n}") for n in range(100)])
    assert await feedback(memory) == MemoryFeedback(1.0, 100, LATER)


async def test_nobody_rates_another_tenants_memories(memory: PostgresMemory, database: asyncpg.Connection) -> None:
    await memory.remember("lab", [BOAT])
    await memory.rate("other", [Rating("a", 0.0, NOW)])
    assert await feedback(memory) is None
    await database.execute("SET ROLE context_builder_app")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await database.execute("SELECT context_memory_rate('lab', '[]')")
