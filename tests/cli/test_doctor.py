"""What the doctor says about an archive that works."""

from __future__ import annotations

import asyncio

import asyncpg
import orjson
import pytest
from typer.testing import CliRunner

from context_builder.archive.migrations import apply, migrations
from context_builder.cli import app
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.engines

NEWEST = list(migrations())[-1]


@pytest.fixture(autouse=True)
def settings(redis_server: RedisServer, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", redis_server.url)
    monkeypatch.setenv("DATABASE_URL", database_url)


def advice() -> str:
    findings = orjson.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    (archive,) = [finding for finding in findings if finding["check"] == "archive"]
    assert archive["ok"]
    return str(archive["advice"])


def execute(database_url: str, sql: str) -> None:
    async def done() -> None:
        connection = await asyncpg.connect(database_url)
        await connection.execute(sql)
        await connection.close()

    asyncio.run(done())


def test_it_names_the_migrations_that_the_database_lacks(database_url: str) -> None:
    asyncio.run(apply(database_url))
    assert advice() == ""
    execute(database_url, f"DELETE FROM context_builder_migrations WHERE name = '{NEWEST}'")
    assert advice() == f"it lacks {NEWEST}: run `context-builder migrate`"
    execute(database_url, "DROP TABLE context_builder_migrations")
    assert advice() == "its migrations cannot be seen; `context-builder migrate` applies what it lacks"
