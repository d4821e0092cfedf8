"""What the doctor says about a Redis that may lose something, an archive that works, and clocks."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import asyncpg
import orjson
import pytest
from redis import Redis
from typer.testing import CliRunner

from context_builder.cli import app
from context_builder.database.migrations import migrations
from context_builder.engines.embeddings import EmbeddingEngine, is_available
from context_builder.session.keys import SESSIONS
from context_builder.testing import InMemoryArchive
from context_builder.wiring.part_description import PartDescription
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.engines

NEWEST = list(migrations())[-1]


@pytest.fixture(autouse=True)
def settings(redis_server: RedisServer, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Redis.from_url(redis_server.url) as redis:
        redis.flushall()  # what another test's sessions were refused would be told
    monkeypatch.setenv("REDIS_URL", redis_server.url)
    monkeypatch.setenv("DATABASE_URL", database_url)


def finding(check: str) -> dict[str, str]:
    findings = orjson.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    (found,) = [finding for finding in findings if finding["check"] == check]
    assert found["ok"]
    return dict(found)


def advice(check: str = "archive") -> str:
    return finding(check)["advice"]


def found(check: str) -> str:
    return finding(check)["found"]


def execute(database_url: str, sql: str) -> None:
    async def done() -> None:
        connection = await asyncpg.connect(database_url)
        await connection.execute(sql)
        await connection.close()

    asyncio.run(done())


def test_what_a_failed_check_says_to_do_is_said_once(database_url: str) -> None:
    assert database_url
    lines = CliRunner().invoke(app, ["doctor"]).stdout.splitlines()
    (place,) = [number for number, line in enumerate(lines) if line.startswith("FAIL  archive")]
    assert lines[place].endswith("has no table context_summaries; run `context-builder migrate`")
    assert not lines[place + 1].strip().startswith("→")


def test_it_names_the_migrations_that_the_database_lacks(migrated_url: str) -> None:
    assert advice() == ""
    execute(migrated_url, f"DELETE FROM context_builder_migrations WHERE name = '{NEWEST}'")
    assert advice() == f"it lacks {NEWEST}: run `context-builder migrate`"
    execute(migrated_url, "DROP TABLE context_builder_migrations")
    assert advice() == "its migrations cannot be seen; `context-builder migrate` applies what it lacks"


def test_it_says_what_embeds_and_how_quickly(
    migrated_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found("embedder") == "none: memories are found by words alone"
    if not is_available():
        pytest.skip("the embedding engine is not installed")
    monkeypatch.setenv("EMBEDDED_EMBEDDINGS", "true")
    monkeypatch.setenv("CONTEXT_BUILDER_HOME", str(tmp_path / "home"))
    try:
        assert re.fullmatch(r"multilingual-e5-small-q4: a query in \d+ ms, 384 dimensions", found("embedder"))
    finally:
        EmbeddingEngine(tmp_path / "home").stop()


def test_an_archive_that_has_no_migrations_is_not_told_to_migrate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "context_builder.wiring.stores.archive_of", lambda *_: (InMemoryArchive(), PartDescription("a file"))
    )
    assert advice() == ""


def test_it_tells_of_what_archive_and_memory_refused_for_good(migrated_url: str, redis_server: RedisServer) -> None:
    with Redis.from_url(redis_server.url) as redis:
        for session_id, counts in (("monday", {"archive_dead": 1}), ("tuesday", {"archive_dead": 2, "memory_dead": 1})):
            redis.hset(f"context_builder:{session_id}:checkpoint", mapping=counts)
            for name, count in counts.items():
                redis.lpush(f"context_builder:{session_id}:{name}", *["{}"] * count)
            redis.zadd(SESSIONS, {session_id: 1.0})
        assert advice("archive") == "3 entries were refused for good: `context-builder dead tuesday` says why"
        assert advice("memory").endswith("1 entry was refused for good: `context-builder dead tuesday` says why")
        redis.delete("context_builder:tuesday:archive_dead")  # put back: the count in the checkpoint stays
        assert advice("archive") == "1 entry was refused for good: `context-builder dead monday` says why"
        redis.flushall()
        assert "refused" not in advice("archive") + advice("memory")
