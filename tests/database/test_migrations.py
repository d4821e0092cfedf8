"""The SQL applies to any PostgreSQL, once, whoever else applies it."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from context_builder.database.migrations import apply, migrations, render
from context_builder.errors import DatabaseError
from tests.archive.rows import ORIGINAL_TABLE
from tests.services.postgrest import PROJECT

pytestmark = pytest.mark.engines

NUMBERED = list(migrations())[1:]


async def test_what_is_missing_is_applied_once(database_url: str) -> None:
    assert await apply(database_url) == NUMBERED
    assert await apply(database_url) == []


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


@pytest.mark.parametrize("name", ["001_summaries", "004_knowledge", "005_session_graph"])
async def test_tables_of_an_earlier_version_are_refused_in_one_line_and_left_alone(
    database_url: str, database: asyncpg.Connection, name: str
) -> None:
    await apply(database_url)
    await database.execute(
        "INSERT INTO context_builder_migrations (name, digest) VALUES ($1, 'another') "
        "ON CONFLICT (name) DO UPDATE SET digest = EXCLUDED.digest",
        name,
    )
    await database.execute("DROP FUNCTION context_knowledge_get")
    with pytest.raises(
        DatabaseError, match=r"earlier version.*`context-builder backup FILE`.*restore FILE`"
    ) as refused:
        await apply(database_url)
    assert "\n" not in str(refused.value)
    with pytest.raises(asyncpg.ObjectNotInPrerequisiteStateError, match="earlier version"):
        await database.execute(render())
    await database.execute("ROLLBACK")
    assert await database.fetchval("SELECT to_regproc('context_knowledge_get') IS NULL")


async def test_what_a_later_version_added_stays(database_url: str, database: asyncpg.Connection) -> None:
    await apply(database_url)
    await database.execute("INSERT INTO context_builder_migrations (name, digest) VALUES ('900_later', 'its own')")
    assert await apply(database_url) == []
