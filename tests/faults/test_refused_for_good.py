"""A talk full of what used to break deliveries: real PostgreSQL behind both ways in, and the real daemon."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import pytest
from redis.asyncio import Redis

from context_builder.archive.archive import Archive
from context_builder.archive.postgres import PostgresArchive
from context_builder.archive.supabase import SupabaseArchive
from context_builder.database.migrations import apply
from context_builder.database.postgres import PostgresDatabase
from context_builder.database.supabase import SupabaseDatabase
from context_builder.memory.memory import MemoryFilter, MemoryQuery, MemoryStore
from context_builder.memory.sql_memory import PostgresMemory, SqlMemory
from context_builder.session.client import SessionClient
from context_builder.session.keys import RECEIVERS, Keys
from context_builder.session.store.dead_letters import DeadLetters
from tests.archive.rows import ORIGINAL_TABLE
from tests.services.daemon import Daemon
from tests.services.postgrest import PostgrestFront, api_key
from tests.services.redis_server import RedisServer
from tests.services.running import published
from tests.services.waiting import wait_until
from tests.session.live import TENANT, Live
from tests.session.saying import spoken

pytestmark = [pytest.mark.engines, pytest.mark.slow]

KEYS = Keys("monday")
LONG_NAME = "".join(map(chr, range(0x4E00, 0x4E00 + 6000)))
RANDOM = b"\x93\xff\x00random"

TALK: list[dict[str, Any]] = [
    spoken(1, "I prefer coffee, ı think, over tea.", "Ayşe"),
    spoken(2, "I prefer short answers.", LONG_NAME),
    spoken(3, "This came with a comma", timestamp="2025-10-02 10:30:45,123"),
    spoken(4, "This came in a week", timestamp="2025-W40-4T10:00"),
    spoken(5, "This came from nowhere", timestamp="2025-10-02T10:30:45+23:59"),
    spoken(6, "The table refuses what is forbidden", timestamp="2025-10-03T10:30:45"),
    spoken(7, "And the talk goes on", timestamp="2025-10-03T10:30:46"),
]
REFUSED = 6
"""The message, and with it the summary, that a constraint refuses."""


class Places(NamedTuple):
    """Where one way in keeps what it is given."""

    archive: Archive
    memory: MemoryStore


@pytest.fixture
async def tables(database_url: str, database: asyncpg.Connection) -> None:
    """Columns of times as the first projects had them, and one row in each table that is refused for good."""
    await database.execute(ORIGINAL_TABLE.format(domains="jsonb"))
    await apply(database_url)
    await database.execute(f"ALTER TABLE context_summaries ADD CHECK (summary_seq <> {REFUSED})")
    await database.execute("ALTER TABLE context_memories ADD CHECK (text NOT LIKE '%forbidden%')")


@pytest.fixture(params=["asyncpg", "supabase"])
async def places(
    request: pytest.FixtureRequest, supabase_project: PostgrestFront, tables: None, database_url: str
) -> AsyncIterator[Places]:
    if request.param == "asyncpg":
        opened = Places(PostgresArchive(PostgresDatabase(database_url)), PostgresMemory(database_url))
    else:
        url, key = supabase_project.url, api_key("service_role")
        opened = Places(SupabaseArchive(SupabaseDatabase(url, key)), SqlMemory(SupabaseDatabase(url, key)))
    yield opened
    await opened.archive.close()
    await opened.memory.close()


async def preferences(memory: MemoryStore, user_id: str, tenant: str) -> list[str]:
    found = await memory.search(tenant, MemoryQuery("", filter=MemoryFilter(user_id=user_id, kinds=("preference",))))
    return [one.memory.text for one in found]


async def archived(database: asyncpg.Connection) -> list[int]:
    return [row[0] for row in await database.fetch("SELECT summary_seq FROM context_summaries ORDER BY summary_seq")]


async def nothing_waits(redis: Redis) -> bool:
    return not await redis.exists(*(KEYS.outbox_of(receiver) for receiver in RECEIVERS))


async def raw_letters(redis: Redis) -> list[int]:
    """How many of the dead letters of each receiver are no random bytes."""
    return [
        sum(letter.raw != RANDOM for letter in await DeadLetters(redis, "monday", receiver).all())
        for receiver in RECEIVERS
    ]


async def test_everything_is_delivered_but_what_is_refused(
    live: Live, places: Places, database: asyncpg.Connection
) -> None:
    live.archive, live.memory = places  # type: ignore[assignment]
    for receiver in RECEIVERS:
        await live.redis.rpush(KEYS.outbox_of(receiver), RANDOM)
    await live.start()
    for number, said in enumerate(TALK, start=1):
        await live.push(said)
        await live.shows(number)
        live.clock.advance(121)
        await live.until(f"message {number} is summarized", message_count=number)
    await live.until("what is refused is counted", undeliverable={"archive": 2, "memory": 2})
    await wait_until(lambda: nothing_waits(live.redis), "everything else is delivered")
    assert await raw_letters(live.redis) == [1, 1]
    assert await archived(database) == [number for number in range(1, len(TALK) + 1) if number != REFUSED]
    kept = await places.memory.search(TENANT, MemoryQuery("", 50, filter=MemoryFilter(kinds=("message",))))
    assert {one.memory.metadata["message_number"] for one in kept} == {1, 2, 3, 4, 5, 7}
    assert await preferences(places.memory, "Ayşe", TENANT) == ["Prefers coffee, ı think, over tea"]
    assert await preferences(places.memory, LONG_NAME, TENANT) == ["Prefers short answers"]


async def test_once_the_reason_is_gone_what_was_put_back_is_delivered(
    live: Live, places: Places, database: asyncpg.Connection
) -> None:
    live.archive, live.memory = places  # type: ignore[assignment]
    session = await live.start()
    await live.push(TALK[REFUSED - 1])
    await live.shows(REFUSED)
    live.clock.advance(121)
    await live.until("what is refused is counted", undeliverable={"archive": 0, "memory": 1})
    await database.execute("ALTER TABLE context_memories DROP CONSTRAINT context_memories_text_check")
    letters = DeadLetters(live.redis, "monday", "memory")
    assert await letters.requeue(await letters.get(1))
    session.end()
    await live.gone(session)
    kept = await places.memory.search(TENANT, MemoryQuery("forbidden"))
    assert [one.memory.metadata["message_number"] for one in kept if one.memory.kind == "message"] == [REFUSED]


async def test_the_daemon_survives_it_all_and_every_restart(
    redis: Redis,
    redis_server: RedisServer,
    tables: None,
    database_url: str,
    database: asyncpg.Connection,
    tmp_path: Path,
) -> None:
    client, heard = SessionClient(redis, "monday"), 0
    for receiver in RECEIVERS:
        await redis.rpush(KEYS.outbox_of(receiver), RANDOM)  # type: ignore[misc]
    settings = {"redis_url": redis_server.url, "database_url": database_url, "raw_buffer_time_window": 0.2}
    for stretch in (TALK[:2], TALK[2:]):
        with Daemon(tmp_path, "monday", **settings) as daemon:
            await wait_until(lambda daemon=daemon: daemon.is_ready, "it is ready")
            for said in stretch:
                heard += 1
                await client.push(said)
                summarized = published(redis, lambda s, n=heard: s["rolling_summary"]["message_count"] == n)
                await wait_until(summarized, f"message {heard} is summarized")
            await wait_until(lambda: nothing_waits(redis), "all is delivered, or given up")
            assert daemon.stop() == 0
            assert "Traceback" not in daemon.output
    state = await client.state()
    assert state is not None
    assert state["undeliverable"] == {"archive": 2, "memory": 2}
    assert await archived(database) == [number for number in range(1, len(TALK) + 1) if number != REFUSED]
    memory = PostgresMemory(database_url)
    assert await preferences(memory, "Ayşe", "default") == ["Prefers coffee, ı think, over tea"]
    assert await preferences(memory, LONG_NAME, "default") == ["Prefers short answers"]
    await memory.close()
