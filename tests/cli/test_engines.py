"""Stopping engines that sessions are running on, and what the embedded ones are called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from redis import Redis
from typer.testing import CliRunner, Result

from context_builder import app as application
from context_builder.cli import app
from context_builder.engines.ports import free_port
from context_builder.engines.redis import RedisEngine
from context_builder.settings import load_settings

pytestmark = pytest.mark.engines


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisEngine]:
    """A home's Redis, running on what counts as its standard port."""
    port = free_port()
    monkeypatch.setattr(application, "STANDARD_PORT", port)
    monkeypatch.setenv("CONTEXT_BUILDER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONTEXT_BUILDER_REDIS_PORT", str(port))
    engine = RedisEngine(tmp_path / "home", port)
    engine.ensure()
    yield engine
    engine.stop()


@pytest.fixture
def session(engine: RedisEngine) -> None:
    """A session that somebody runs there."""
    address = engine.running()
    assert address
    store = Redis.from_url(address.url)
    store.set("context_builder:monday:owner", orjson.dumps({"token": 1, "host": "lab-3\x1b[2J", "pid": 4711}))
    store.zadd("context_builder:sessions", {"monday": 1.0})


def stop(*options: str) -> Result:
    return CliRunner().invoke(app, ["engines", "stop", *options], catch_exceptions=False)


def test_engines_that_nobody_uses_are_stopped_without_a_question(engine: RedisEngine) -> None:
    assert "Redis       stopped" in stop().output
    assert engine.running() is None


@pytest.mark.usefixtures("session")
def test_running_sessions_are_named_and_nothing_is_stopped_where_nobody_can_be_asked(engine: RedisEngine) -> None:
    result = stop()
    assert result.exit_code == 1
    assert result.stderr == (
        "context-builder: These run now and would stand still: monday (process 4711 on lab-3). "
        "Stop the engines? Nobody is here to answer; --yes says yes\n"
    )
    assert engine.running()


@pytest.mark.usefixtures("session")
def test_yes_stops_them_all_the_same(engine: RedisEngine) -> None:
    assert "Redis       stopped" in stop("--yes").output
    assert engine.running() is None


async def test_the_banner_calls_the_embedded_redis_embedded_also_on_the_standard_port(engine: RedisEngine) -> None:
    async with application.open_app(load_settings()) as opened:
        assert opened.redis_is.what == f"embedded Redis at 127.0.0.1:{application.STANDARD_PORT}"
        assert opened.redis_is.hint == "set REDIS_URL for your own"


async def test_the_banner_calls_no_other_redis_embedded(
    engine: RedisEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXT_BUILDER_HOME", str(tmp_path / "another"))
    async with application.open_app(load_settings()) as opened:
        assert opened.redis_is.what == f"Redis at localhost:{application.STANDARD_PORT}"
