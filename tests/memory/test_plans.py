"""A search reads indexes, not the table; and what is written does not read what there is."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import md5

import asyncpg
import pytest

from context_builder.knowledge.store import document_space
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery
from context_builder.memory.sql_memory import PostgresMemory
from tests.memory.vectors import LetterEmbedder

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
    said = await say(hybrid, "acme", 3_000)
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


async def test_a_search_of_a_small_tenant_scans_no_table_either(
    hybrid: PostgresMemory, database: asyncpg.Connection
) -> None:
    """In a plan that reads a whole table, because it is small still, others' rows would be read once it is large."""
    said = await say(hybrid, "acme", 20)
    await hybrid.close()
    before = await used(database)
    for where in (MemoryFilter(), MemoryFilter(session_id="s-0"), MemoryFilter(user_id="user-0", with_unowned=True)):
        for text in ("", *said[:7]):
            assert await hybrid.search("acme", MemoryQuery(text, filter=where))
    await hybrid.close()
    assert (await used(database))["table scans"] == before["table scans"]


async def test_of_a_large_tenant_a_session_s_own_memories_are_read_and_all_of_them_found(
    hybrid: PostgresMemory, database: asyncpg.Connection
) -> None:
    said = await say(hybrid, "acme", 3_000)
    await hybrid.close()
    before = await used(database)
    for where in (MemoryFilter(session_id="s-7"), MemoryFilter(user_id="user-7")):
        found = await hybrid.search("acme", MemoryQuery(" ".join(said[700:703]), 100, filter=where))
        assert {one.memory.text for one in found} == {*said[700:800]}
        assert sum("vector" in one.origins for one in found) == 100
    await hybrid.close()
    after = await used(database)
    assert [after[index] for index in INDEXES[:2]] == [before[index] for index in INDEXES[:2]]


async def test_the_neighbours_of_each_hit_are_read_and_not_its_whole_session(
    memory: PostgresMemory, database: asyncpg.Connection
) -> None:
    await memory.remember("others", [Memory(f"m-{n}", "boat", session_id=f"s-{n}", position=n) for n in range(2_000)])
    session = [Memory(f"m-{n}", f"harbour {n}", session_id="mine", position=n) for n in range(50)]
    await memory.remember("acme", session)
    await memory.close()
    await database.execute("ANALYZE")  # by which tenant and session, a fortieth each, have hardly one in common
    read = "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'context_memories_session'"
    await used(database)
    before = await database.fetchval(read)
    assert await memory.search("acme", MemoryQuery("harbour", filter=MemoryFilter(session_id="mine")))
    await memory.close()
    await used(database)
    assert await database.fetchval(read) - before < 20 * len(session)


async def test_to_remember_takes_no_longer_the_more_there_is(
    memory: PostgresMemory, database: asyncpg.Connection
) -> None:
    await database.execute("ALTER TABLE context_memories SET (autovacuum_enabled = off)")
    await memory.remember("others", [Memory(f"m-{n}", "boat") for n in range(500)])
    await database.execute("ANALYZE")  # when nobody had heard of acme
    await memory.remember("acme", [Memory(f"m-{n}", f"harbour {n}") for n in range(2_000)])
    await memory.close()
    read = (
        "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes"
        " WHERE relname IN ('context_memories', 'context_memory_vectors_default')"
    )
    await used(database)
    before = await database.fetchval(read)
    await memory.remember("acme", [Memory(f"m-{n}", f"harbour {n}") for n in range(1_995, 2_005)])
    await memory.close()
    await used(database)
    assert await database.fetchval(read) - before < 100


async def test_what_is_narrow_is_found_as_in_the_indexes_of_everybody(
    hybrid: PostgresMemory, database: asyncpg.Connection
) -> None:
    choose = random.Random(2)
    texts = [f"{n} {' '.join(choose.sample(['ab', 'ce', 'fi', 'go', 'hu'], 3))}" for n in range(3_000)]
    await hybrid.remember("acme", [Memory(f"m-{n}", text, session_id=f"s-{n // 40}") for n, text in enumerate(texts)])
    ranked = "SELECT array_agg((h.id, round(h.score::numeric, 3)) ORDER BY h.score DESC, h.id) FROM {} AS h"
    by_words = ranked.format("unnest(context_memory_full_text('acme', $1, 'm.session_id = ''s-5''', $2, 50, '{}'))")
    by_meaning = ranked.format("context_memory_by_embedding('acme', 'letters', $1, 'm.session_id = ''s-5''', $2, 50)")
    for words in ("ab 207 211", "ab ce 207", "ab ce fi"):
        for query, asked in ((by_words, words), (by_meaning, await LetterEmbedder().embed_query(words))):
            narrow, wide = [await database.fetchval(query, asked, is_narrow) for is_narrow in (True, False)]
            assert narrow == wide, words
            assert len({row[0] for row in narrow}) == len(narrow)


async def test_a_filter_is_narrow_that_lets_few_of_the_tenant_s_memories_through(
    memory: PostgresMemory, database: asyncpg.Connection
) -> None:
    await say(memory, "acme", 3_000)
    await memory.remember("acme", [Memory(f"nobody-s-{n}", "…") for n in range(400)])
    asked = "SELECT context_memory_is_narrow('acme', $1)"
    expected: tuple[tuple[dict[str, object], bool], ...] = (
        ({}, False),
        ({"kinds": ["point"]}, False),
        ({"session_id": "s-7"}, True),
        ({"user_id": "user-7"}, True),
        ({"user_id": "user-7", "with_unowned": True}, False),
        ({"user_id": "user-7", "session_id": "s-7", "with_unowned": True}, True),
        ({"since": "2025-01-01T00:00:00Z"}, False),
        ({"since": "2025-01-02T00:00:00Z", "until": "2025-01-02T01:00:00Z"}, True),
        ({"sensitivities": ["restricted"]}, True),
        ({"sensitivities": ["public", "internal"]}, False),
        ({"sensitivities": []}, False),
    )
    for where, narrow in expected:
        assert await database.fetchval(asked, json.dumps(where)) is narrow, where


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("space", ["acme", document_space("acme")])
async def test_what_a_tenant_has_nothing_of_that_is_hidden_is_not_searched(
    database: asyncpg.Connection, space: str
) -> None:
    asked = "SELECT context_memory_admits_nothing($1, $2)"

    async def admits_nothing(**where: object) -> object:
        return await database.fetchval(asked, space, json.dumps(where))

    assert await admits_nothing(sensitivities=["restricted"])
    assert not await admits_nothing(sensitivities=["restricted", "internal"])
    assert not await admits_nothing(sensitivities=[])
    assert not await admits_nothing()
    await database.execute(
        "INSERT INTO context_artifacts (tenant_id, ref, version, kind, title, content, digest, sensitivity)"
        " VALUES ('acme', 'session:monday', 1, 'document', '', '', '', 'restricted')"
    )
    assert not await admits_nothing(sensitivities=["restricted"])
    assert not await admits_nothing(sensitivities=["restricted", "confidential"])
    assert await admits_nothing(sensitivities=["confidential"])


async def say(memory: PostgresMemory, tenant: str, count: int) -> Sequence[str]:
    """Remember texts of random letters, a hundred in each session and of each user, a minute apart."""
    choose = random.Random(1)
    said = ["".join(choose.choices("abcdefghijklmnopqrstuvwxyz", k=8)) for _ in range(count)]
    memories = [
        Memory(
            id=f"m-{n}",
            text=text,
            session_id=f"s-{n // 100}",
            user_id=f"user-{n // 100}",
            position=n,
            time=datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=n),
        )
        for n, text in enumerate(said)
    ]
    await memory.remember(tenant, memories)
    return said


async def used(database: asyncpg.Connection) -> dict[str, int]:
    """How often each index of the memories was used, and how often one of their tables was read as a whole."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    while await database.fetchval(others):
        await database.execute("SELECT pg_sleep(0.01)")
    await database.execute("SELECT pg_stat_clear_snapshot()")
    rows = await database.fetch(
        "SELECT indexrelname, idx_scan FROM pg_stat_user_indexes WHERE relname LIKE 'context_memor%'"
    )
    scans = await database.fetchval("SELECT sum(seq_scan) FROM pg_stat_user_tables WHERE relname LIKE 'context_memor%'")
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
