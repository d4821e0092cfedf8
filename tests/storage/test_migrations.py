"""The SQL applies to any PostgreSQL, once, whoever else applies it."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from context_builder.errors import ArchiveError
from context_builder.storage.migrations import apply, migrations, render
from tests.archive.rows import ORIGINAL_TABLE
from tests.services.postgrest import PROJECT

pytestmark = pytest.mark.engines

NUMBERED = list(migrations())[1:]


async def test_what_is_missing_is_applied_once(database_url: str) -> None:
    assert await apply(database_url) == NUMBERED
    assert await apply(database_url) == []


async def test_what_was_applied_as_another_text_is_applied_again_and_what_follows_it(
    database_url: str, database: asyncpg.Connection
) -> None:
    await apply(database_url)
    name = NUMBERED[3]
    await database.execute("UPDATE context_builder_migrations SET digest = '' WHERE name = $1", name)
    await database.execute("DROP FUNCTION context_knowledge_get")
    assert await apply(database_url) == NUMBERED[3:]
    assert await apply(database_url) == []
    assert await database.fetchval("SELECT to_regproc('context_knowledge_get') IS NOT NULL")


async def test_what_had_no_embedding_where_memories_themselves_said_so_is_still_to_be_embedded(
    database_url: str, database: asyncpg.Connection
) -> None:
    await apply(database_url)
    await database.execute("""
        ALTER TABLE context_memories ADD COLUMN embedded boolean NOT NULL DEFAULT false;
        CREATE INDEX context_memories_unembedded ON context_memories (tenant_id) WHERE NOT embedded;
        INSERT INTO context_memories (tenant_id, id, kind, text, embedded)
        VALUES ('acme', 'by words', 'message', 'tortoise', false), ('acme', 'by both', 'message', 'dog', true);
        UPDATE context_builder_migrations SET digest = '' WHERE name = '002_memories';
    """)
    for again in range(2):
        assert (await apply(database_url) == []) == bool(again)
        pending = await database.fetch("SELECT tenant_id, id FROM context_memory_pending")
        assert [tuple(row) for row in pending] == [("acme", "by words")]
    assert not await database.fetchval("SELECT to_regclass('context_memories_unembedded')")


async def test_two_programs_may_apply_at_once(database_url: str) -> None:
    first, second = await asyncio.gather(apply(database_url), apply(database_url))
    assert sorted(first + second) == NUMBERED


async def test_the_script_for_the_sql_editor_does_the_same_and_may_be_repeated(
    database_url: str, database: asyncpg.Connection
) -> None:
    await database.execute(PROJECT)
    await database.execute(ORIGINAL_TABLE.format(domains="text"))
    await database.execute(render())
    await database.execute(render())
    assert await apply(database_url) == []


async def test_outsiders_have_no_access_and_the_service_role_has(
    database_url: str, database: asyncpg.Connection
) -> None:
    await database.execute(PROJECT)
    await apply(database_url)
    await database.execute("INSERT INTO context_summaries (session_id, summary_text) VALUES ('s', 't')")
    for role in ("anon", "authenticated"):
        await database.execute(f"SET ROLE {role}")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await database.fetch("SELECT * FROM context_summaries")
        await database.execute("RESET ROLE")
    await database.execute("SET ROLE service_role")
    assert len(await database.fetch("SELECT * FROM context_summaries")) == 1
    await database.execute("RESET ROLE")


async def test_row_level_security_hides_the_rows_even_from_who_was_granted_the_table(
    database_url: str, database: asyncpg.Connection
) -> None:
    await database.execute(PROJECT)
    await apply(database_url)
    await database.execute("INSERT INTO context_summaries (session_id, summary_text) VALUES ('s', 't')")
    await database.execute("GRANT ALL ON context_summaries TO anon")
    await database.execute("SET ROLE anon")
    assert await database.fetch("SELECT * FROM context_summaries") == []
    assert await database.fetch("SELECT * FROM context_builder_migrations") == []
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
        await database.execute("INSERT INTO context_summaries (session_id, summary_text) VALUES ('s', 't')")


async def test_a_database_made_before_0_1_0_is_refused_in_one_line(
    database_url: str, database: asyncpg.Connection
) -> None:
    await database.execute(migrations()["000_migrations"])
    await database.execute("INSERT INTO context_builder_migrations (name) VALUES ('001_context_summaries')")
    with pytest.raises(
        ArchiveError, match=r"made before version 0\.1\.0: archived summaries stay.*DROP TABLE"
    ) as refused:
        await apply(database_url)
    assert "\n" not in str(refused.value)
