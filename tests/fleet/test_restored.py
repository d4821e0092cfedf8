"""A session that a backup brings back into a running fleet's Redis goes on although nobody speaks."""

from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest

from context_builder.session.keys import Keys
from tests.fleet.conftest import StartWorker
from tests.fleet.watching import Fleet, ready
from tests.services.command import command
from tests.services.daemon import Daemon
from tests.services.postgres_server import PostgresServer
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.engines, pytest.mark.slow]


async def test_what_waits_in_a_restored_session_is_summarized_though_nobody_speaks(
    start_worker: StartWorker,
    fleet: Fleet,
    redis_server: RedisServer,
    postgres_server: PostgresServer,
    migrated_url: str,
    tmp_path: Path,
) -> None:
    redis, spoken = fleet.redis, Keys("monday")
    talking, restoring = tmp_path / "talking", tmp_path / "restoring"
    for folder in (talking, restoring):
        folder.mkdir()
    settings = {"redis_url": redis_server.url, "feed_memory": "false"}
    with Daemon(talking, "run", "monday", **settings, database_url=migrated_url) as terminal:
        await wait_until(lambda: terminal.is_ready, "it is run in a terminal")
        await fleet.say("monday", "monday", "monday")
        await fleet.hears("monday")
        terminal.kill()  # what was said waits for its summary
    file = tmp_path / "monday.backup"
    assert command(talking, "backup", str(file), **settings, database_url=migrated_url).exit_code == 0
    await redis.flushall()
    empty = postgres_server.create_database(migrated=True)
    worker = start_worker(database_url=empty, raw_buffer_time_window=0.3, poll_interval=0.1, discovery_scan=0.3)
    await ready(worker)
    result = command(restoring, "restore", str(file), "--force", "--yes", **settings, database_url=empty)
    assert result.exit_code == 0, result.output
    await fleet.owned_by(worker, sessions=["monday"])

    async def is_summarized() -> bool:
        return (await archived(empty)) == [("monday", 3)]

    await wait_until(is_summarized, "what waited is summarized and archived")
    assert await redis.llen(spoken.input) == 0


async def archived(url: str) -> list[tuple[str, int]]:
    """Sessions and how many messages their archived summaries are of."""
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch("SELECT session_id, message_count FROM context_summaries")]
    finally:
        await connection.close()
