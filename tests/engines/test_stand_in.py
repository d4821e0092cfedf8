"""fakeredis in place of Redis, where no server runs."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
from redis import Redis
from redis.exceptions import AuthenticationError, ResponseError

from context_builder.engines import redis_launch
from context_builder.engines.engine import LOOPBACK
from context_builder.engines.redis import RedisEngine, is_embedded
from context_builder.storage.redis import check_server, client_for
from tests.engines.conftest import RedisSubject
from tests.services.running import published, push, running
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_launch, "find_servers", list)


async def test_a_session_runs_on_it(redis_subject: RedisSubject) -> None:
    address = redis_subject.engine.ensure()
    assert "fakeredis stands in for Redis: nothing is kept when it stops" in address.warning
    async with client_for(address.url) as redis:
        assert await check_server(redis)
        async with running(redis):
            await push(
                redis, *({"text": f"How does DNA replication work? {i}", "message_number": i} for i in range(50))
            )
            await wait_until(published(redis, lambda state: state["received_messages"] == 50), "all are heard")
        await redis.set("large", b"x" * 20_000_000)
        assert await redis.strlen("large") == len(await redis.get("large")) == 20_000_000


def test_it_asks_for_the_password_too(redis_subject: RedisSubject) -> None:
    address = redis_subject.engine.ensure()
    password = (redis_subject.home / "redis.password").read_text()
    for protocol in (2, 3):
        for guess in (None, "guess"):
            stranger = Redis(host=LOOPBACK, port=redis_subject.port, password=guess, protocol=protocol)
            with pytest.raises(AuthenticationError):
                stranger.get("key")
        listener = Redis(host=LOOPBACK, port=redis_subject.port, password=password, protocol=protocol)
        assert listener.lpush("key", "value")
    with Redis.from_url(address.url) as ours, pytest.raises(ResponseError, match="unknown command"):
        ours.config_get("dir")
    assert password not in " ".join(psutil.Process(redis_subject.pid).cmdline())
    assert is_embedded(redis_subject.port)


def test_an_error_does_not_end_the_connection(redis_subject: RedisSubject) -> None:
    with Redis.from_url(redis_subject.engine.ensure().url, single_connection_client=True) as client:
        client.set("text", "no list")
        before = client.client_id()
        with pytest.raises(ResponseError, match="WRONGTYPE"):
            client.lpush("text", "x")
        assert client.client_id() == before


def test_it_is_found_and_stopped_as_a_server_is(redis_subject: RedisSubject) -> None:
    started = redis_subject.engine.ensure()
    assert started.started
    assert redis_subject.engine.ensure() == redis_subject.engine.running()
    assert redis_subject.engine.stop()
    assert redis_subject.engine.running() is None


def test_without_a_password_it_says_that_everybody_gets_in(redis_subject: RedisSubject) -> None:
    address = RedisEngine(redis_subject.home, redis_subject.port, guarded=False).ensure()
    assert "fakeredis stands in" in address.warning
    assert "every user of this machine can read and write it" in address.warning
    assert Redis(host=LOOPBACK, port=redis_subject.port).ping()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts it as another user")
def test_run_by_root_it_gives_up_being_root(home: Path) -> None:
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    subject = RedisSubject(closed / "home")
    subject.engine.ensure()
    assert set(psutil.Process(subject.pid).uids()) & {0} == set()
    subject.engine.stop()
