"""Tab completes commands and session ids; when Redis is away it completes nothing, and says nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from redis import Redis

from context_builder.cli.command import session_ids
from context_builder.session.keys import SESSIONS
from tests.services.daemon import Daemon
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.engines


@pytest.fixture
def store(redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Redis:
    monkeypatch.setenv("REDIS_URL", redis_server.url)
    client = Redis.from_url(redis_server.url)
    client.flushall()
    client.zadd(SESSIONS, {"monday": 1, "monday-2": 2, "friday": 3, "mon$(reboot)": 4, b"mon\xff": 5})
    return client


def completed(line: str, url: str, folder: Path) -> str:
    """All that a shell is told which asks how the line goes on."""
    asked = {"_context_builder_complete": "complete_bash", "comp_words": line, "comp_cword": line.count(" ")}
    with Daemon(folder, redis_url=url, **asked) as command:
        assert command.wait(60) == 0
        return command.output


def test_ids_are_completed_the_newest_first_and_nothing_that_a_shell_could_take_for_more(store: Redis) -> None:
    assert session_ids("mon") == ["monday-2", "monday"]
    assert session_ids("x") == []


def test_a_shell_gets_them(store: Redis, redis_server: RedisServer, tmp_path: Path) -> None:
    assert completed("context-builder explain fri", redis_server.url, tmp_path).split() == ["friday"]
    assert completed("context-builder ba", redis_server.url, tmp_path).split() == ["backup"]


def test_redis_away_or_wrongly_set_is_silence_and_quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for url in ("redis://127.0.0.1:1/0", "nonsense"):
        monkeypatch.setenv("REDIS_URL", url)
        began = time.monotonic()
        assert session_ids("mon") == []
        assert time.monotonic() - began < 3
    assert completed("context-builder explain mon", "redis://127.0.0.1:1/0", tmp_path).strip() == ""
