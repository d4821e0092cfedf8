"""Which Redis is started, and which one is believed to be ours."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError

from context_builder.engines import redis as engine_module
from context_builder.engines import redis_launch
from context_builder.engines.redis import RedisEngine
from context_builder.engines.redis_launch import find_servers, wheel_server
from context_builder.errors import EngineError
from context_builder.storage.redis import client_for
from context_builder.wiring.embedded import restart_when_killed
from tests.engines.conftest import RedisSubject
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines


@pytest.mark.parametrize("pid", ["this process", "the other server"])
def test_a_record_that_leads_to_a_server_of_others_is_not_believed(
    redis_subject: RedisSubject, redis_server: RedisServer, pid: str
) -> None:
    number = os.getpid() if pid == "this process" else redis_server.pid
    (redis_subject.home / "redis.json").write_text(json.dumps({"port": redis_server.port, "pid": number}))
    assert redis_subject.engine.running() is None
    assert not redis_subject.engine.stop()
    assert redis_subject.engine.ensure().started
    with Redis.from_url(redis_server.url) as client:
        assert client.ping()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"port": 1}'])
def test_a_record_that_cannot_be_read_counts_as_none(redis_subject: RedisSubject, content: str) -> None:
    (redis_subject.home / "redis.json").write_text(content)
    assert redis_subject.engine.running() is None


def test_a_server_that_is_frozen_is_not_doubled(redis_subject: RedisSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    redis_subject.engine.ensure()
    monkeypatch.setattr(engine_module, "_ANSWER_TIMEOUT", 0.2)
    os.kill(redis_subject.pid, signal.SIGSTOP)
    try:
        with pytest.raises(EngineError, match=rf"process {redis_subject.pid}\) does not answer; end that process"):
            redis_subject.engine.ensure()
    finally:
        os.kill(redis_subject.pid, signal.SIGCONT)


def test_it_writes_every_command_down_and_never_evicts(redis_subject: RedisSubject) -> None:
    address = redis_subject.engine.ensure()
    with Redis.from_url(address.url) as client:
        info = client.info()
    assert (info["aof_enabled"], info["maxmemory_policy"]) == (1, "noeviction")
    assert not list((redis_subject.home / "redis").glob("*.rdb"))


def program(folder: Path, version: str, rest: str = "exit 1") -> Path:
    """A server in ``folder`` that knows its version, and then does what ``rest`` says."""
    path = folder / "valkey-server"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "Server v={version} sha=0" && exit\n{rest}\n')
    path.chmod(0o755)
    return path


def test_a_server_that_is_too_old_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = program(tmp_path, "6.0.16")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert old not in [found.path for found in find_servers()]
    assert wheel_server() in [found.path for found in find_servers()]


def test_the_next_server_takes_what_the_first_cannot_read(
    redis_subject: RedisSubject, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(home, "7.0.15", "echo 'Fatal: Bad file format reading the append only file'; exit 1")
    monkeypatch.setenv("PATH", str(home))
    address = redis_subject.engine.ensure()
    with Redis.from_url(address.url) as client:
        assert client.info("server")["executable"] != str(home / "valkey-server")


def test_a_server_that_would_not_see_the_data_is_not_started(
    redis_subject: RedisSubject, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (redis_subject.home / "redis" / "appendonlydir").mkdir(parents=True)
    program(home, "6.2.14")
    monkeypatch.setenv("PATH", str(home))
    monkeypatch.setattr(redis_launch, "wheel_server", lambda: None)
    with pytest.raises(EngineError, match=r"redis was written by Redis 7 or later, or Valkey: install one of these"):
        redis_subject.engine.ensure()


def test_data_that_cannot_be_read_is_said_with_the_servers_own_words(redis_subject: RedisSubject) -> None:
    folder = redis_subject.home / "redis"
    folder.mkdir()
    (folder / "appendonly.aof").write_text("this is no append-only file\n" * 3)
    with pytest.raises(EngineError, match=r"did not start: .*[Bb]ad file format.*redis\.log"):
        redis_subject.engine.ensure()


def test_without_a_server_it_says_what_to_install(redis_subject: RedisSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_launch, "find_servers", list)
    with pytest.raises(EngineError, match=r"set REDIS_URL, or install redis-server .* the extra embedded"):
        redis_subject.engine.ensure()


async def test_a_killed_server_is_started_again_by_who_uses_it_and_a_stopped_one_is_not(
    redis_subject: RedisSubject,
) -> None:
    engine = RedisEngine(redis_subject.home, redis_subject.port)
    async with restart_when_killed(client_for(engine.ensure().url), engine) as client:
        await client.set("remembered", "yes")
        killed = redis_subject.pid
        os.kill(killed, signal.SIGKILL)

        async def is_back() -> bool:
            try:
                return bool(await client.ping())
            except RedisError:
                return False

        await wait_until(is_back, "the client has started it again")
        assert redis_subject.pid != killed
        assert redis_subject.engine.stop()
        assert not await is_back()
        assert redis_subject.engine.running() is None
