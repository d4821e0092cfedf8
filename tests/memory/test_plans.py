"""A search reads indexes, not the table."""

from __future__ import annotations

import random
from hashlib import md5

import asyncpg
import pytest

from context_builder.memory.memory import Memory, MemoryQuery
from context_builder.memory.postgres import PostgresMemory

pytestmark = pytest.mark.engines

INDEXES = (
    "context_memories_keys",
    f"context_memory_vectors_{md5(b'acme').hexdigest()}_26",
    "context_memories_session",
    "context_memories_newest",
    "context_memories_pkey",
)


async def test_a_search_among_many_uses_every_index_and_never_scans_the_table(
    hybrid: PostgresMemory, database: asyncpg.Connection
) -> None:
    words = random.Random(1)
    said = ["".join(words.choices("abcdefghijklmnopqrstuvwxyz", k=8)) for _ in range(3_000)]
    await hybrid.remember(
        "acme", [Memory(f"m-{n}", text, session_id=f"s-{n // 100}", position=n) for n, text in enumerate(said)]
    )
    await hybrid.close()  # its connections report what they used when they end
    await database.execute("ANALYZE")
    before = await used(database)
    for text in said[:5]:
        await hybrid.search("acme", MemoryQuery(text))
    await hybrid.search("acme", MemoryQuery(""))
    await hybrid.close()
    after = await used(database)
    assert {index for index in INDEXES if after[index] > before[index]} == set(INDEXES)
    assert after["table scans"] == before["table scans"]


async def used(database: asyncpg.Connection) -> dict[str, int]:
    """How often each index of the memories was used, and how often the whole table was read."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    while await database.fetchval(others):
        await database.execute("SELECT pg_sleep(0.01)")
    await database.execute("SELECT pg_stat_clear_snapshot()")
    rows = await database.fetch(
        "SELECT indexrelname, idx_scan FROM pg_stat_user_indexes WHERE relname LIKE 'context_memor%'"
    )
    scans = await database.fetchval("SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'context_memories'")
    return {row["indexrelname"]: row["idx_scan"] for row in rows} | {"table scans": scans}


async def test_a_tenant_that_grows_gets_a_partition_of_its_own_and_small_ones_share_the_default(
    hybrid: PostgresMemory, database: asyncpg.Connection
) -> None:
    await hybrid.remember("small", [Memory("one", "listen")])
    await hybrid.remember("large", [Memory(f"m-{n}", f"passage {n}") for n in range(1_201)])
    partitions = await database.fetch(
        "SELECT tenant_id, tableoid::regclass::text, count(*) FROM context_memory_vectors GROUP BY 1, 2"
    )
    own = f"context_memory_vectors_{md5(b'large').hexdigest()}"
    assert {tuple(row) for row in partitions} == {("small", "context_memory_vectors_default", 1), ("large", own, 1_201)}
    assert (await hybrid.search("small", MemoryQuery("silent")))[0].origins == ("vector",)
    assert await hybrid.forget("large", ids=["m-7"]) == 1
    assert not await database.fetch("SELECT FROM context_memory_vectors WHERE id = 'm-7'")
