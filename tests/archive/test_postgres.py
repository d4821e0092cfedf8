"""The archive in PostgreSQL keeps each summary once, and says what is wrong."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import asyncpg
import pytest

from context_builder.archive.postgres import PostgresArchive
from context_builder.database.migrations import apply
from context_builder.database.postgres import PostgresDatabase
from context_builder.errors import DatabaseRejected, DatabaseUnavailable
from tests.archive.rows import ORIGINAL_TABLE, summary
from tests.services.link import Link
from tests.services.postgres_server import PostgresServer

pytestmark = pytest.mark.engines


@pytest.fixture
async def archive(database_url: str) -> AsyncIterator[PostgresArchive]:
    archive = PostgresArchive(PostgresDatabase(database_url))
    yield archive
    await archive.close()


async def test_a_summary_that_another_process_delivers_meanwhile_is_kept_once(
    archive: PostgresArchive, migrated_url: str, database: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await archive.deliver(summary(1))
    another, elsewhere = summary(1, summary_text="another"), PostgresArchive(PostgresDatabase(migrated_url))
    asked, value = [], archive._value

    async def meanwhile(query: str, argument: str) -> Any:
        answer = await value(query, argument)
        asked.append(query)
        if len(asked) <= 2:  # between any two questions of the first try
            await elsewhere.deliver(another)
        return answer

    monkeypatch.setattr(archive, "_value", meanwhile)
    assert await archive.deliver(another) == 2
    assert await database.fetchval("SELECT count(*) FROM context_summaries") == 2
    await elsewhere.close()


@pytest.mark.parametrize("domains", ["text", "jsonb", "text[]"])
async def test_a_table_with_the_original_types_is_completed_and_written(
    archive: PostgresArchive, database_url: str, database: asyncpg.Connection, domains: str
) -> None:
    await database.execute(ORIGINAL_TABLE.format(domains=domains))
    await database.execute("INSERT INTO context_summaries (session_id, summary_text) VALUES ('old', 'kept')")
    await apply(database_url)

    await archive.deliver(summary(covers_message_end=2**53 - 1))
    await archive.deliver(summary(covers_message_end=2**53 - 1))
    kept = await database.fetch("SELECT session_id, summary_seq FROM context_summaries ORDER BY id")
    assert [tuple(record) for record in kept] == [("old", None), ("session-1", 1)]


async def test_a_missing_table_is_said_with_what_to_do(archive: PostgresArchive) -> None:
    with pytest.raises(DatabaseRejected, match="no table context_summaries; run `context-builder migrate`"):
        await archive.check()


async def test_a_role_that_may_not_write_is_found_out(
    migrated_url: str, database: asyncpg.Connection, archive: PostgresArchive
) -> None:
    await archive.check()
    await database.execute("CREATE ROLE reader LOGIN; GRANT SELECT ON context_summaries TO reader")
    reader = PostgresArchive(PostgresDatabase(migrated_url.replace("postgres@", "reader@")))
    with pytest.raises(DatabaseRejected, match="but not write it; grant INSERT"):
        await reader.check()
    with pytest.raises(DatabaseRejected, match="does not allow this role"):
        await reader.deliver(summary())
    await reader.close()


async def test_a_database_that_is_not_there_is_worth_another_try(database_url: str, unused_tcp_port: int) -> None:
    archive = PostgresArchive(PostgresDatabase(f"postgresql://me:secret@127.0.0.1:{unused_tcp_port}/x"))
    with pytest.raises(
        DatabaseUnavailable, match=rf"^PostgreSQL at 127.0.0.1:{unused_tcp_port} cannot be reached .Connection refused"
    ):
        await archive.deliver(summary())
    with pytest.raises(DatabaseUnavailable):
        await apply(f"postgresql://me:secret@127.0.0.1:{unused_tcp_port}/x")


async def test_a_database_that_does_not_answer_does_not_hang_the_archive() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        archive = PostgresArchive(
            PostgresDatabase(f"postgresql://me:secret@127.0.0.1:{silent.getsockname()[1]}/x", timeout=0.2)
        )
        with pytest.raises(DatabaseUnavailable, match="does not answer in time"):
            await archive.deliver(summary())


async def test_a_network_that_goes_dead_does_not_hang_the_archive_and_is_survived(
    postgres_server: PostgresServer, migrated_url: str
) -> None:
    async with Link(postgres_server.port).opened() as link:
        archive = PostgresArchive(
            PostgresDatabase(migrated_url.replace(str(postgres_server.port), str(link.port)), timeout=1.0)
        )
        await archive.deliver(summary(1))
        async with link.stalled():
            for _ in range(3):  # more than it has connections
                with pytest.raises(DatabaseUnavailable, match="does not answer in time"):
                    await archive.deliver(summary(2))
        await archive.deliver(summary(2))
        assert await archive.forget("session-1") == 2
        await archive.close()


async def test_it_recovers_when_its_connections_are_cut(
    archive: PostgresArchive, migrated_url: str, database: asyncpg.Connection
) -> None:
    await archive.deliver(summary(1))
    await database.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid()"
    )
    with suppress(DatabaseUnavailable):  # unless the pool has noticed already
        await archive.deliver(summary(2))
    await archive.deliver(summary(2))
    assert await archive.forget("session-1") == 2


@pytest.mark.parametrize("url", ["postgresql://me:s3cret@db.example:6543/x?password=s3cret", "postgresql:///x"])
async def test_its_name_is_free_of_secrets(url: str) -> None:
    archive = PostgresArchive(PostgresDatabase(url))
    assert archive.name in ("PostgreSQL at db.example:6543", "PostgreSQL at localhost")
    assert "s3cret" not in repr(archive)
