"""``/readyz`` of a real daemon tells within two seconds that its session is not served, and that it is again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx
import pytest
from redis import Redis

from context_builder.engines.engine import LOOPBACK, free_port
from tests.services.daemon import Daemon
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.engines, pytest.mark.slow]

AT_ONCE = 2.0
"""Seconds within which it is told."""


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that only this test's daemon uses."""
    (tmp_path / "redis").mkdir()
    server = RedisServer(tmp_path / "redis")
    server.start()
    yield server
    os.kill(server.pid, signal.SIGCONT)
    server.kill()


class Probe:
    """Asks a daemon as an orchestrator of containers does."""

    def __init__(self, web: httpx.AsyncClient) -> None:
        self._web = web

    async def tells(self, status: int, since: float | None = None, timeout: float = AT_ONCE) -> None:
        """Wait until ``/readyz`` has this status, at most so long ``since`` a monotonic moment."""
        left = timeout if since is None else since + timeout - time.monotonic()
        await wait_until(lambda: self._is(status), f"/readyz tells {status}", left)
        assert (await self._web.get("/livez")).status_code == 200

    async def _is(self, status: int) -> bool:
        try:
            return (await self._web.get("/readyz")).status_code == status
        except httpx.TransportError:
            return False


@pytest.fixture
async def probe(own_redis: RedisServer, tmp_path: Path) -> AsyncIterator[Probe]:
    """Of a daemon that is ready."""
    port = free_port()
    settings = {"redis_url": own_redis.url, "http_port": port, "feed_memory": "false"}
    with Daemon(tmp_path, "run", "monday", **settings):
        async with httpx.AsyncClient(base_url=f"http://{LOOPBACK}:{port}", timeout=1) as web:
            asked = Probe(web)
            await asked.tells(200, timeout=20)
            yield asked


def stall(server: RedisServer) -> None:
    os.kill(server.pid, signal.SIGSTOP)


def go_on(server: RedisServer) -> None:
    os.kill(server.pid, signal.SIGCONT)


def refuse(server: RedisServer) -> None:
    with Redis.from_url(server.url) as client:
        client.replicaof(LOOPBACK, free_port())  # of nobody: read-only


def accept(server: RedisServer) -> None:
    with Redis.from_url(server.url) as client:
        client.replicaof("NO", "ONE")


@pytest.mark.parametrize(
    ("end", "begin"),
    [
        pytest.param(RedisServer.kill, RedisServer.start, id="killed"),
        pytest.param(stall, go_on, id="stalled"),
        pytest.param(refuse, accept, id="read-only"),
    ],
)
async def test_it_is_not_ready_while_redis_takes_nothing(
    own_redis: RedisServer,
    probe: Probe,
    end: Callable[[RedisServer], None],
    begin: Callable[[RedisServer], None],
) -> None:
    for _ in range(2):
        end(own_redis)
        await probe.tells(503, since=time.monotonic())
        begin(own_redis)
        await probe.tells(200, since=time.monotonic())


async def test_it_stays_ready_while_nobody_speaks(probe: Probe) -> None:
    with pytest.raises(AssertionError, match="in vain until /readyz tells 503"):
        await probe.tells(503, timeout=3)


async def test_a_daemon_that_waits_for_another_one_is_not_ready(
    own_redis: RedisServer, probe: Probe, tmp_path: Path
) -> None:
    port = free_port()
    (tmp_path / "second").mkdir()
    with Daemon(tmp_path / "second", "run", "monday", redis_url=own_redis.url, http_port=port) as second:
        await wait_until(lambda: "session.waiting" in second.output, "it waits", 20)
        async with httpx.AsyncClient(base_url=f"http://{LOOPBACK}:{port}", timeout=1) as web:
            await Probe(web).tells(503)
        await probe.tells(200)
