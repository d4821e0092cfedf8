"""The real supabase client, over HTTP, in front of the real PostgreSQL."""

from __future__ import annotations

import json
import socket

import asyncpg
import pytest
from structlog.testing import capture_logs

from context_builder.archive.supabase import SupabaseArchive
from context_builder.database.migrations import apply
from context_builder.database.supabase import SupabaseDatabase
from context_builder.errors import DatabaseRejected, DatabaseUnavailable
from tests.archive.rows import ORIGINAL_TABLE, summary
from tests.services.postgrest import SECRET_KEY, PostgrestFront, api_key

pytestmark = pytest.mark.engines

COUNT = "SELECT count(*) FROM context_summaries"


def service(project: PostgrestFront) -> SupabaseArchive:
    return SupabaseArchive(SupabaseDatabase(project.url, api_key("service_role")))


async def test_an_older_row_without_a_number_is_not_counted(
    supabase_project: PostgrestFront, migrated_url: str, database: asyncpg.Connection
) -> None:
    archive = service(supabase_project)
    await database.execute("INSERT INTO context_summaries (session_id, summary_text) VALUES ('session-1', 'older')")
    assert [await archive.deliver(row) for row in (summary(1), summary(1, summary_text="another"))] == [1, 2]
    await archive.close()


async def test_what_was_applied_is_known_where_it_can_be_seen(
    supabase_project: PostgrestFront, database_url: str
) -> None:
    archive = service(supabase_project)
    assert await archive.applied() == frozenset()
    applied = await apply(database_url)
    assert await archive.applied() == {*applied}
    await archive.close()


@pytest.mark.parametrize("domains", ["text", "jsonb"])
async def test_a_project_with_the_original_columns_works_with_one_warning(
    supabase_project: PostgrestFront, database: asyncpg.Connection, domains: str
) -> None:
    await database.execute(ORIGINAL_TABLE.format(domains=domains))
    archive = service(supabase_project)
    with capture_logs() as logs:
        for row in (summary(1), summary(1), summary(2), summary(1)):
            await archive.deliver(row)
    assert [(entry["event"], entry["lacking"]) for entry in logs] == [("archive.columns_lacking", ["summary_seq"])]
    kept = await database.fetch("SELECT summary_text, domains_covered FROM context_summaries ORDER BY id")
    assert [record["summary_text"] for record in kept] == [summary(1).summary_text, summary(2).summary_text]
    assert json.loads(kept[0]["domains_covered"]) == summary().domains_covered
    await archive.close()


async def test_every_column_but_the_session_and_the_text_may_be_lacking(
    supabase_project: PostgrestFront, database: asyncpg.Connection
) -> None:
    await database.execute("CREATE TABLE context_summaries (session_id text, summary_text text)")
    archive = service(supabase_project)
    with capture_logs() as logs:
        await archive.check()
        await archive.deliver(summary(1))
        await archive.deliver(summary(1))
    assert len(logs) == 1
    assert await database.fetchval(COUNT) == 1
    await archive.close()


async def test_a_column_without_its_unique_index_still_tells_a_repeated_delivery(
    supabase_project: PostgrestFront, database: asyncpg.Connection
) -> None:
    await database.execute(ORIGINAL_TABLE.format(domains="jsonb"))
    await database.execute("ALTER TABLE context_summaries ADD COLUMN summary_seq integer")
    archive = service(supabase_project)
    for row in (summary(1), summary(1)):
        await archive.deliver(row)
    assert await database.fetchval("SELECT array_agg(summary_seq) FROM context_summaries") == [1]
    await archive.close()


async def test_the_anon_key_reads_and_writes_nothing(
    supabase_project: PostgrestFront, migrated_url: str, database: asyncpg.Connection
) -> None:
    archive = SupabaseArchive(SupabaseDatabase(supabase_project.url, api_key("anon")))
    for refused in (archive.check(), archive.deliver(summary()), archive.forget("session-1")):
        with pytest.raises(DatabaseRejected, match="use the project's service key"):
            await refused
    assert await database.fetchval(COUNT) == 0
    await archive.close()


async def test_an_insert_is_tried_without_leaving_a_row(
    supabase_project: PostgrestFront, migrated_url: str, database: asyncpg.Connection
) -> None:
    archive = service(supabase_project)
    await archive.check_inserts()
    await database.execute("CREATE POLICY reads ON context_summaries FOR SELECT TO authenticated USING (true)")
    await database.execute("GRANT SELECT, INSERT, UPDATE ON context_summaries TO authenticated")
    reader = SupabaseArchive(SupabaseDatabase(supabase_project.url, api_key("authenticated")))
    await reader.check()
    with pytest.raises(DatabaseRejected, match="use the project's service key"):
        await reader.check_inserts()
    assert await database.fetchval(COUNT) == 0
    for one in (archive, reader):
        await one.close()


async def test_a_project_without_the_table_is_told_what_to_run(supabase_project: PostgrestFront) -> None:
    archive = service(supabase_project)
    with pytest.raises(
        DatabaseRejected, match="no table context_summaries; run the SQL that `context-builder migrate`"
    ):
        await archive.deliver(summary())
    await archive.close()


async def test_a_project_that_is_down_is_worth_another_try(supabase_project: PostgrestFront, migrated_url: str) -> None:
    archive = service(supabase_project)
    await archive.deliver(summary(1))
    supabase_project.stop()
    with pytest.raises(DatabaseUnavailable, match=r"^Supabase at 127.0.0.1:\d+ cannot be reached: ConnectError$"):
        await archive.deliver(summary(2))
    await archive.close()


async def test_a_project_that_does_not_answer_does_not_hang_the_archive() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        archive = SupabaseArchive(
            SupabaseDatabase(f"http://127.0.0.1:{silent.getsockname()[1]}", api_key("service_role"), timeout=0.2)
        )
        for stuck in (archive.deliver(summary()), archive.check()):
            with pytest.raises(DatabaseUnavailable, match=r"cannot be reached: .*Timeout"):
                await stuck
        await archive.close()


@pytest.mark.parametrize("key", [api_key("service_role")[:-4] + "AAAA", "sb_secret_not\nfor-a-header", "sb_secret_ü"])
async def test_a_wrong_key_is_refused_and_never_quoted(supabase_project: PostgrestFront, key: str) -> None:
    archive = SupabaseArchive(SupabaseDatabase(supabase_project.url, key))
    with pytest.raises(DatabaseRejected, match="SUPABASE_KEY") as caught:
        await archive.deliver(summary())
    assert key not in f"{caught.value} {caught.value!r} {archive!r} {archive.name}"
    assert "secret" not in str(caught.value)
    await archive.close()


async def test_a_new_secret_key_stands_in_its_own_header_alone(
    supabase_project: PostgrestFront, migrated_url: str
) -> None:
    archive = SupabaseArchive(SupabaseDatabase(supabase_project.url, SECRET_KEY))
    assert await archive.deliver(summary(1)) == 1
    await archive.close()
