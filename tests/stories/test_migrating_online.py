"""Sessions and searches go on while the database is migrated, from the first migration's state to the last."""

from __future__ import annotations

import asyncio
import hashlib
import time
from datetime import timedelta

import asyncpg
import pytest
from redis.asyncio import Redis

from context_builder.database.migrations import apply, migrations
from context_builder.memory.memory import MemoryQuery
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.session.client import SessionClient, spoken
from tests.services.waiting import wait_until
from tests.stories.conftest import Command
from tests.stories.talk import BEGAN

pytestmark = [pytest.mark.engines, pytest.mark.slow]

SEARCH, SEARCHABLE = "Which enzyme is it?", 3
"""Migrations after which memories are searched."""

LONGEST = 5.0
"""Seconds that a search may take meanwhile, which is when a caller gives up."""


async def migrated_to(database: asyncpg.Connection, last: int) -> None:
    """Bring the database to the state that the first migrations leave, as an earlier version did."""
    (_, ledger), *numbered = migrations().items()
    await database.execute(ledger)
    for name, sql in numbered[:last]:
        if not await database.fetchval("SELECT EXISTS (SELECT FROM context_builder_migrations WHERE name = $1)", name):
            await database.execute(sql)
            digest = hashlib.sha256(sql.encode()).hexdigest()
            await database.execute(
                "INSERT INTO context_builder_migrations (name, digest) VALUES ($1, $2)", name, digest
            )


async def test_a_session_and_searches_go_on_while_it_migrates(
    context_builder: Command, redis: Redis, database_url: str, database: asyncpg.Connection
) -> None:
    await migrated_to(database, 1)
    session, said = SessionClient(redis, "monday"), 0
    stop, migrated = asyncio.Event(), asyncio.Event()

    async def talk() -> None:
        nonlocal said
        while not stop.is_set():
            said += 1
            await session.push(
                spoken(
                    "monday", said, "Alice", f"Remark {said} is about enzyme {said}.", BEGAN + timedelta(seconds=said)
                )
            )
            await asyncio.sleep(0.02)

    daemon = context_builder("run", "monday", database_url=database_url, raw_buffer_time_window=1, summary_keep_last=2)
    await wait_until(lambda: daemon.is_ready, "it runs")
    talking = asyncio.create_task(talk())

    async def archived() -> int:
        return int(await database.fetchval("SELECT count(*) FROM context_summaries"))

    await wait_until(archived, "the first migration is enough for the archive")
    await migrated_to(database, SEARCHABLE)
    await database.execute(
        "INSERT INTO context_memories (tenant_id, id, kind, session_id, position, text) "
        "SELECT 'default', 'old:' || n, 'message', 'old', n, 'Enzyme ' || n || ' was found' "
        "FROM generate_series(1, 5000) AS n"
    )
    memory, slowest, searches = PostgresMemory(database_url), 0.0, 0

    async def search() -> None:
        nonlocal slowest, searches
        while not migrated.is_set():
            began = time.monotonic()
            assert await memory.search("default", MemoryQuery(SEARCH, limit=3))
            slowest, searches = max(slowest, time.monotonic() - began), searches + 1

    searching = asyncio.create_task(search())
    before = await archived()
    migrating = context_builder("migrate", database_url=database_url)
    await wait_until(lambda: migrating.process.poll() is not None, "it is migrated")
    assert migrating.process.poll() == 0, migrating.output
    assert migrating.output.count("applied ") == len(migrations()) - 1 - SEARCHABLE
    migrated.set()
    await searching
    assert searches > 0
    assert slowest < LONGEST

    async def goes_on() -> bool:
        return await archived() > before

    await wait_until(goes_on, "it still archives")
    stop.set()
    await talking
    ended = context_builder("end", "monday", database_url=database_url)
    assert ended.wait(60) == 0, ended.output
    assert daemon.wait(30) == 0
    remembered = await database.fetchval(
        "SELECT count(*) FROM context_memories WHERE session_id = 'monday' AND kind = 'message'"
    )
    last = await database.fetchrow("SELECT * FROM context_summaries ORDER BY summary_seq DESC LIMIT 1")
    assert (remembered, last["message_count"]) == (said, said)
    assert await apply(database_url) == []
    await memory.close()
