"""Which Redis is started, and which one is believed to be ours."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from redis import Redis

from context_builder.engines import redis as engine_module
from context_builder.engines.redis import find_server
from context_builder.errors import EngineError
from tests.engines.conftest import RedisSubject
from tests.services.redis_server import RedisServer

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
    with Redis.from_url(address.url, decode_responses=True) as client:
        wanted = {"appendonly": "yes", "appendfsync": "everysec", "save": "", "maxmemory-policy": "noeviction"}
        assert {name: client.config_get(name)[name] for name in wanted} == wanted


def test_a_server_that_is_too_old_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "redis-server"
    old.write_text("#!/bin/sh\necho Redis server v=5.0.14 sha=0\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    server = find_server()
    assert server is not None
    assert Path(server) != old


def test_data_that_cannot_be_read_is_said_with_the_servers_own_words(redis_subject: RedisSubject) -> None:
    folder = redis_subject.home / "redis"
    folder.mkdir()
    (folder / "appendonly.aof").write_text("this is no append-only file\n" * 3)
    with pytest.raises(EngineError, match=r"did not start: .*[Bb]ad file format.*redis\.log"):
        redis_subject.engine.ensure()


def test_without_any_server_a_stand_in_serves_and_says_so(
    redis_subject: RedisSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("lupa")
    monkeypatch.setattr(engine_module, "find_server", lambda: None)
    address = redis_subject.engine.ensure()
    assert "fakeredis" in address.warning
    with Redis.from_url(address.url) as client:
        assert client.eval("return redis.call('SET', KEYS[1], 'x')", 1, "key")
    assert redis_subject.engine.ensure() == redis_subject.engine.running()
    assert redis_subject.engine.stop()
    assert redis_subject.engine.running() is None


def test_without_a_server_or_stand_in_it_says_what_to_install(
    redis_subject: RedisSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "find_server", lambda: None)
    monkeypatch.setattr("context_builder.engines.stand_in.is_available", lambda: False)
    with pytest.raises(EngineError, match="install redis-server or valkey, or set REDIS_URL"):
        redis_subject.engine.ensure()
