"""Stopping engines that sessions are running on, and what the embedded ones are called."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest
from redis import Redis
from typer.testing import CliRunner, Result

from context_builder.cli import app
from context_builder.engines.embeddings import EmbeddingEngine, is_available
from context_builder.engines.engine import free_port
from context_builder.engines.redis import RedisEngine
from context_builder.errors import StoreError
from context_builder.settings.settings import load_settings
from context_builder.wiring import servers as wired
from context_builder.wiring.app import open_app
from context_builder.wiring.part_description import PartDescription
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.engines


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisEngine]:
    """A home's Redis, running on what counts as its standard port."""
    port = free_port()
    monkeypatch.setattr(wired, "STANDARD_PORT", port)
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


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def stop(*options: str) -> Result:
    return invoke("engines", "stop", *options)


def test_engines_that_nobody_uses_are_stopped_without_a_question(engine: RedisEngine) -> None:
    assert "Redis       stopped" in stop().output
    assert engine.running() is None


@pytest.mark.usefixtures("session")
def test_running_sessions_are_named_and_nothing_is_stopped_where_nobody_can_be_asked(engine: RedisEngine) -> None:
    result = stop()
    assert result.exit_code == 1
    assert result.stderr == (
        "context-builder: These run now and would stand still: monday (process 4711 on lab-3). "
        "Stop the engines? There is no terminal to ask on; add --yes to go ahead\n"
    )
    assert engine.running()


@pytest.mark.usefixtures("session")
def test_yes_stops_them_all_the_same(engine: RedisEngine) -> None:
    assert "Redis       stopped" in stop("--yes").output
    assert engine.running() is None


async def test_the_banner_calls_the_embedded_redis_embedded_also_on_the_standard_port(engine: RedisEngine) -> None:
    async with open_app(load_settings()) as opened:
        assert opened.redis_is.what == f"embedded Redis at 127.0.0.1:{wired.STANDARD_PORT}"
        assert opened.redis_is.hint == "set REDIS_URL for your own"


async def test_the_banner_calls_no_other_redis_embedded(
    redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wired, "STANDARD_PORT", redis_server.port)
    monkeypatch.setenv("CONTEXT_BUILDER_REDIS_PORT", str(redis_server.port))
    monkeypatch.setenv("CONTEXT_BUILDER_HOME", str(tmp_path / "home"))
    async with open_app(load_settings()) as opened:
        assert opened.redis_is.what == f"Redis at localhost:{redis_server.port}"
        assert await opened.redis.ping()


async def test_beside_another_users_embedded_redis_there_is_one_of_our_own(
    engine: RedisEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXT_BUILDER_HOME", str(tmp_path / "another"))
    async with open_app(load_settings()) as opened:
        ours = RedisEngine(tmp_path / "another", wired.STANDARD_PORT)
        address = ours.running()
        assert address is not None
        assert opened.redis_is.what == address.name != engine.ensure().name
        assert opened.redis_is.access == 'eval "$(context-builder engines env)"'
        assert f"REDIS_PORT={urlsplit(address.url).port} " in (await asyncio.to_thread(invoke, "engines", "env")).output
        assert await opened.redis.ping()
    ours.stop()


async def test_a_redis_that_wants_a_password_of_its_own_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = RedisServer(tmp_path, "--requirepass", "theirs")
    server.start(password="theirs")
    monkeypatch.setattr(wired, "STANDARD_PORT", server.port)
    monkeypatch.setenv("CONTEXT_BUILDER_REDIS_PORT", str(server.port))
    monkeypatch.setenv("CONTEXT_BUILDER_HOME", str(tmp_path / "home"))
    with pytest.raises(StoreError, match="set REDIS_PASSWORD or REDIS_URL"):
        async with wired.open_redis(load_settings()):
            pass
    monkeypatch.setenv("REDIS_PASSWORD", "theirs")
    async with wired.open_redis(load_settings()) as redis:
        assert await redis.ping()
    server.kill()


def test_the_embedding_engine_is_shown_and_stopped_with_the_others(
    engine: RedisEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Embeddings" not in invoke("engines").output
    monkeypatch.setenv("EMBEDDED_EMBEDDINGS", "true")
    embeddings = EmbeddingEngine(tmp_path / "home")
    if not is_available():
        pytest.skip("the embedding engine is not installed")
    assert "Embeddings  not running" in invoke("engines").output
    address = embeddings.ensure()
    assert f"Embeddings  {address.name}" in invoke("engines").output
    assert orjson.loads(invoke("engines", "--json").output)["embeddings"] == address.name
    assert "Embeddings  stopped" in invoke("engines", "stop", "--yes").output
    assert embeddings.running() is None


def test_password_prints_what_a_listener_logs_in_with(engine: RedisEngine) -> None:
    result = invoke("engines", "password")
    assert result.stderr == ""
    password = result.stdout.removesuffix("\n")
    with Redis(port=wired.STANDARD_PORT, password=password) as listener:
        assert listener.lpush("context_builder:monday:input", "{}") == 1
    assert 'eval "$(context-builder engines env)"' in invoke("engines").output
    assert password not in invoke("engines").output + invoke("engines", "--json").output


def test_one_line_lets_the_programs_of_a_shell_in(engine: RedisEngine) -> None:
    engine.stop()
    exported = invoke("engines", "env").stdout
    shown = subprocess.run(
        ["bash", "-c", f'{exported}echo "$REDIS_PORT $REDIS_PASSWORD"'], capture_output=True, text=True, check=True
    )
    port, password = shown.stdout.split()
    with Redis(port=int(port), password=password) as listener:
        assert listener.ping()


async def test_with_a_listeners_password_set_our_commands_start_the_embedded_redis_as_without(
    engine: RedisEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_PASSWORD", engine.password())
    engine.stop()
    async with wired.open_redis(load_settings()) as redis:
        assert await redis.ping()
    assert engine.running()


def test_the_setting_turns_the_password_off_and_the_banner_says_so(
    engine: RedisEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.stop()
    monkeypatch.setenv("EMBEDDED_REDIS_PASSWORD", "false")

    async def described() -> PartDescription:
        async with open_app(load_settings()) as opened:
            return opened.redis_is

    redis_is = asyncio.run(described())
    assert "every user of this machine can read and write it (EMBEDDED_REDIS_PASSWORD=false)" in redis_is.hint
    assert redis_is.access == ""
    assert Redis(port=wired.STANDARD_PORT).ping()
    assert "every user of this machine" in invoke("engines").output
    refused = invoke("engines", "password")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == "context-builder: EMBEDDED_REDIS_PASSWORD is false: the embedded Redis asks for none\n"
