"""``doctor --fix`` mends what it can, asks before it changes a server, and says what remains."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from redis import Redis
from typer.testing import CliRunner, Result

from context_builder.cli import app
from context_builder.database.migrations import lacking, migrations
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.engines


@pytest.fixture(autouse=True)
def store(redis_server: RedisServer, database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Redis:
    """A Redis that reports nothing and evicts, and a database without tables."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REDIS_URL", redis_server.url)
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("EMBEDDED_EMBEDDINGS", "false")
    client = Redis.from_url(redis_server.url, decode_responses=True)
    client.config_set("notify-keyspace-events", "x")
    client.config_set("maxmemory-policy", "allkeys-lru")
    yield client
    client.config_set("notify-keyspace-events", "")
    client.config_set("maxmemory-policy", "noeviction")


def doctor(*options: str) -> Result:
    return CliRunner().invoke(app, ["doctor", *options])


def test_without_leave_only_files_are_mended(store: Redis, database_url: str) -> None:
    done = doctor("--fix")
    assert "fixed .env is missing" in done.stderr
    assert Path(".env").stat().st_mode & 0o777 == 0o600
    assert "left  the database lacks 001_summaries" in done.stderr
    assert "--yes fixes it" in done.stderr
    assert asyncio.run(lacking(database_url)) == [*migrations()][1:]
    assert store.config_get("maxmemory-policy")["maxmemory-policy"] == "allkeys-lru"
    assert done.exit_code == 1


def test_with_leave_servers_are_mended_too_and_nothing_remains(store: Redis, database_url: str) -> None:
    Path(".env").write_text("POLL_INTERVAL=0.5\n")
    Path(".env").chmod(0o644)
    done = doctor("--fix", "--yes")
    assert done.exit_code == 0, done.output
    assert "fixed .env can be read by others" in done.stderr
    assert Path(".env").read_text() == "POLL_INTERVAL=0.5\n"
    assert asyncio.run(lacking(database_url)) == []
    assert store.config_get("maxmemory-policy")["maxmemory-policy"] == "noeviction"
    flags = store.config_get("notify-keyspace-events")["notify-keyspace-events"]
    assert {*"xEl"} <= {*flags}
    assert "fixed" not in doctor("--fix", "--yes").stderr


def test_a_server_that_is_away_is_for_the_check_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    done = doctor("--fix", "--yes")
    assert "fixed .env is missing" in done.stderr
    assert "FAIL  archive" in done.stdout


def test_what_cannot_be_mended_is_left_with_the_reason(
    store: Redis, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.execute_command("ACL", "SETUSER", "app", "on", ">hunter2", "~*", "&*", "+@all", "-config|set")
    monkeypatch.setenv("REDIS_URL", redis_server.url.replace("redis://", "redis://app:hunter2@"))
    done = doctor("--fix", "--yes")
    store.execute_command("ACL", "DELUSER", "app")
    assert "left  127.0.0.1" in done.stderr
    assert "does not let this user set maxmemory-policy" in done.stderr
    assert "hunter2" not in done.output


def test_a_wrong_setting_is_told_before_anything_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLL_INTERVAL", "often")
    done = doctor("--fix", "--yes")
    assert (done.exit_code, "POLL_INTERVAL: " in done.stderr, Path(".env").exists()) == (2, True, False)
