"""Ending a session that nobody runs, with the archive that the settings name."""

from __future__ import annotations

import orjson
import pytest
from redis import Redis
from typer.testing import CliRunner

from context_builder.cli import app
from tests.services.redis_server import RedisServer
from tests.session.saying import spoken

pytestmark = pytest.mark.engines


def test_it_summarizes_what_remains_and_counts_it_in_good_english(
    redis_server: RedisServer, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", redis_server.url)
    monkeypatch.setenv("DATABASE_URL", database_url)
    CliRunner().invoke(app, ["migrate"])
    with Redis.from_url(redis_server.url) as redis:
        redis.flushall()
        redis.lpush("context_builder:monday:input", orjson.dumps(spoken(1)))
        ended = CliRunner().invoke(app, ["end", "monday"], catch_exceptions=False)
        assert ended.output.splitlines()[-1] == "Session monday is closed: 1 message, 1 summary archived."
        redis.lpush("context_builder:monday:input", *(orjson.dumps(spoken(n)) for n in (2, 3)))
        ended = CliRunner().invoke(app, ["end", "monday"], catch_exceptions=False)
        assert ended.output.splitlines()[-1] == "Session monday is closed: 3 messages, 2 summaries archived."


def test_it_does_not_wait_for_what_is_refused_for_good_and_says_where_that_is(
    redis_server: RedisServer, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", redis_server.url)
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    with Redis.from_url(redis_server.url) as redis:
        redis.flushall()
        redis.lpush("context_builder:monday:input", orjson.dumps(spoken(1)))
        redis.rpush("context_builder:monday:outbox", b"\xffrandom")
        ended = CliRunner().invoke(app, ["end", "monday"], catch_exceptions=False)
    assert ended.exit_code == 0
    assert ended.stdout.splitlines()[-1] == "Session monday is closed: 1 message, 1 summary archived."
    assert "1 entry refused for good since it began: `context-builder dead monday`" in ended.stderr
