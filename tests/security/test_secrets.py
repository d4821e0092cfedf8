"""No secret is ever shown, whatever goes wrong: with every kind of failure provoked, the daemon a real process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import orjson
import pytest
from redis import Redis

from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.settings.settings import load_settings
from tests.services.command import command_in
from tests.services.model_server import Fault, ModelServer
from tests.services.postgrest import PostgrestFront, api_key
from tests.services.redis_server import RedisServer
from tests.services.waiting import PATIENCE, wait_until
from tests.session.saying import spoken

pytestmark = [pytest.mark.engines, pytest.mark.slow]

REDIS_PASSWORD = "redis-s3cret"
WRONG_PASSWORD = "wr0ng-s3cret"
DATABASE_PASSWORD = "database-s3cret"
API_KEY = "sk-secret"
PROXY_PASSWORD = "proxy-s3cret"
SUPABASE_KEY = api_key("service_role")
SECRETS = (REDIS_PASSWORD, WRONG_PASSWORD, DATABASE_PASSWORD, API_KEY, PROXY_PASSWORD, SUPABASE_KEY, "s3cret")


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that wants a password."""
    (tmp_path / "redis").mkdir()
    server = RedisServer(tmp_path / "redis")
    server.start()
    with Redis.from_url(server.url) as client:
        client.config_set("requirepass", REDIS_PASSWORD)
    yield server
    server.kill()


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A model server that refuses the key and quotes it."""
    with ModelServer() as server:
        server.model.fault = Fault.UNAUTHORIZED
        yield server


def redis_url(server: RedisServer, password: str = REDIS_PASSWORD) -> str:
    return f"redis://:{password}@{LOOPBACK}:{server.port}/0"


def environment(folder: Path, **settings: str) -> Mapping[str, str]:
    """Nothing of this machine's own settings, and the secrets."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ}
    ours = {"CONTEXT_BUILDER_HOME": str(folder), "EMBEDDED_EMBEDDINGS": "false", "LOG_LEVEL": "debug"}
    return {**kept, **ours, "OPENAI_API_KEY": API_KEY, **settings}


def betrayed(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


@contextmanager
def talking(folder: Path, environ: Mapping[str, str], redis: Redis) -> Iterator[list[str]]:
    """A daemon that hears a few messages; afterwards, the list holds everything that it wrote and served."""
    port = free_port()
    shown: list[str] = []
    daemon = subprocess.Popen(
        [sys.executable, "-m", "context_builder", "run", "monday"],
        env={**environ, "HTTP_PORT": str(port), "RAW_BUFFER_TIME_WINDOW": "0.3", "LLM_ATTEMPTS": "1"},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        redis.lpush("context_builder:monday:input", *(orjson.dumps(spoken(n)) for n in range(1, 6)))
        _wait(lambda: redis.exists("context_builder:monday:state"), daemon)
        yield shown
        shown.append(httpx.get(f"http://{LOOPBACK}:{port}/metrics").text)
        shown.append((redis.get("context_builder:monday:state") or b"").decode())  # type: ignore[union-attr]
        shown.append((redis.get("context_builder:monday:owner") or b"").decode())  # type: ignore[union-attr]
    finally:
        daemon.terminate()
        shown.append(daemon.communicate(timeout=PATIENCE)[0])


def _wait(predicate: object, daemon: subprocess.Popen[str], timeout: float = PATIENCE) -> None:
    deadline = time.monotonic() + timeout
    while not predicate():  # type: ignore[operator]
        assert daemon.poll() is None, daemon.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_model_and_a_database_that_refuse(guarded: RedisServer, model: ModelServer, tmp_path: Path) -> None:
    """The key is refused and quoted by the server; the database is not there; then Redis goes away, too."""
    base_url = f"http://user:{PROXY_PASSWORD}@{LOOPBACK}:{model.port}/v1"
    database = f"postgresql://writer:{DATABASE_PASSWORD}@{LOOPBACK}:{free_port()}/archive"
    environ = environment(tmp_path, REDIS_URL=redis_url(guarded), OPENAI_BASE_URL=base_url, DATABASE_URL=database)
    with Redis.from_url(redis_url(guarded)) as redis, talking(tmp_path, environ, redis) as shown:
        asyncio.run(wait_until(lambda: len(model.model.requests) >= 2, "the model is asked twice"))
        guarded.restart()  # without a password now, so that the daemon's own is refused
        redis.config_set("requirepass", REDIS_PASSWORD)
    written = "\n".join(shown)
    assert "check OPENAI_API_KEY" in written
    assert f"Redis at {LOOPBACK}:" in written
    assert not betrayed(written)
    for looked in (("doctor",), ("doctor", "--json"), ("settings",), ("migrate",), ("sessions",), ("state", "monday")):
        done = command_in(environ, *looked)
        assert done.output, looked
        assert not betrayed(done.output), looked
        assert "Traceback" not in done.output


def test_a_supabase_that_refuses(guarded: RedisServer, supabase_project: PostgrestFront, tmp_path: Path) -> None:
    """There is no table, and then a key with a wrong signature."""
    for key in (SUPABASE_KEY, SUPABASE_KEY[:-4] + "AAAA"):
        environ = environment(
            tmp_path, REDIS_URL=redis_url(guarded), SUPABASE_URL=supabase_project.url, SUPABASE_KEY=key
        )
        for looked in (("doctor",), ("end", "monday"), ("settings",)):
            done = command_in(environ, *looked)
            assert key[:-4] not in done.output
            assert not betrayed(done.output), looked
            assert "Traceback" not in done.output


@pytest.mark.parametrize(
    "url",
    [
        "redis://:{password}@{host}:{port}/0",
        "redis://someone:{password}@{host}:{port}/0",
        "redis://:{password}/x@{host}:{port}/0",
        "redis://:{password}@{host}:{port}/0?colour=red",
        "rediss://:{password}@{host}:{port}/0?ssl_ca_certs=/none.pem",
    ],
)
def test_a_redis_that_refuses_is_told_in_one_line(guarded: RedisServer, tmp_path: Path, url: str) -> None:
    wrong = url.format(password=WRONG_PASSWORD, host=LOOPBACK, port=guarded.port)
    done = command_in(environment(tmp_path, REDIS_URL=wrong), "run", "monday")
    assert done.exit_code in {1, 2}
    assert done.stderr.startswith("context-builder: ")
    assert done.stderr.count("\n") == 1
    assert not betrayed(done.output)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REDIS_URL", f"http://:{REDIS_PASSWORD}@cache"),
        ("REDIS_URL", f"redis://:{REDIS_PASSWORD}#@cache"),
        ("DATABASE_URL", f"mysql://user:{DATABASE_PASSWORD}@database/archive"),
        ("DATABASE_URL", f"postgresql://user:{DATABASE_PASSWORD}/x@database/archive"),
        ("OPENAI_BASE_URL", f"ftp://user:{PROXY_PASSWORD}@models/v1"),
        ("POLL_INTERVAL", API_KEY),
    ],
)
def test_a_wrong_setting_is_named_and_not_quoted(tmp_path: Path, name: str, value: str) -> None:
    done = command_in(environment(tmp_path, **{name: value}), "run", "monday")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"context-builder: {name}: ")
    assert not betrayed(done.output)


def test_settings_do_not_show_them_when_printed() -> None:
    environ = {
        "REDIS_URL": f"redis://:{REDIS_PASSWORD}@cache",
        "REDIS_PASSWORD": REDIS_PASSWORD,
        "DATABASE_URL": f"postgresql://user:{DATABASE_PASSWORD}@database/archive",
        "OPENAI_API_KEY": API_KEY,
        "SUPABASE_URL": "https://project.supabase.co",
        "SUPABASE_KEY": SUPABASE_KEY,
    }
    settings = load_settings(environ, env_file=None)
    assert not betrayed(f"{settings} {settings!r} {settings.model_dump_json()}")
