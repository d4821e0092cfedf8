"""Calls of SQL functions over a pool of connections."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from context_builder.database.postgres import PostgresDatabase, StartedServer
from context_builder.errors import DatabaseUnavailable, EngineError
from context_builder.knowledge.store import KnowledgeStore

pytestmark = pytest.mark.engines


@pytest.mark.parametrize("connections", [1, 3])
async def test_no_more_connections_are_opened_than_there_may_be(migrated_url: str, connections: int) -> None:
    database = PostgresDatabase(migrated_url, connections=connections)
    observer = await asyncpg.connect(migrated_url)
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    try:
        before = await observer.fetchval(others)
        store = KnowledgeStore(database)
        await asyncio.gather(*(store.quality("lab", ["artifact:none"]) for _ in range(40)))
        assert await observer.fetchval(others) - before == connections
    finally:
        await observer.close()
        await database.close()


async def test_a_part_that_waits_leaves_the_others_theirs(migrated_url: str) -> None:
    whole = PostgresDatabase(migrated_url, connections=2)
    one, other = whole.part(1), whole.part(1)
    async with one.as_self("nothing"):  # its only connection
        waiting = asyncio.create_task(one.ping())
        await other.ping()
        assert not waiting.done()
    await waiting
    await one.close()
    await other.ping()  # a part is closed by itself alone
    await whole.close()


async def test_a_server_of_ours_is_started_once_and_again_when_that_failed(migrated_url: str) -> None:
    starts = 0

    async def start() -> str:
        nonlocal starts
        starts += 1
        if starts == 1:
            raise EngineError("no room")
        return migrated_url

    async def restarted() -> str | None:
        raise AssertionError("it was reached")

    database = PostgresDatabase(StartedServer("ours", start, restarted))
    with pytest.raises(DatabaseUnavailable, match="no room"):
        await database.ping()
    await asyncio.gather(database.ping(), database.ping())
    assert starts == 2
    await database.close()
