"""``/readyz`` of a real daemon tells within two seconds that its session is not served, and that it is again."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx
import pytest
from redis import Redis

from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.session.committer import LATE
from context_builder.session.config import SessionConfig
from tests.services.daemon import Daemon
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.engines, pytest.mark.slow]

AT_ONCE = 2.0
"""Seconds within which it is told, where the machine is not too busy to tell."""


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

    async def tells(self, status: int) -> None:
        """Wait until ``/readyz`` has this status; ``/livez`` is well all the same."""
        await wait_until(lambda: self._is(status, "/readyz"), f"/readyz tells {status}")
        await wait_until(lambda: self._is(200, "/livez"), "/livez tells 200")

    async def _is(self, status: int, path: str) -> bool:
        try:
            return (await self._web.get(path)).status_code == status
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
            await asked.tells(200)
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
        await probe.tells(503)
        begin(own_redis)
        await probe.tells(200)


async def test_it_stays_ready_while_nobody_speaks(probe: Probe) -> None:
    await asyncio.sleep(2 * AT_ONCE)  # nothing tells that nobody has spoken for long
    await probe.tells(200)


def test_it_is_told_at_once() -> None:
    assert SessionConfig().tick + LATE < AT_ONCE


async def test_a_daemon_that_waits_for_another_one_is_not_ready(
    own_redis: RedisServer, probe: Probe, tmp_path: Path
) -> None:
    port = free_port()
    (tmp_path / "second").mkdir()
    with Daemon(tmp_path / "second", "run", "monday", redis_url=own_redis.url, http_port=port) as second:
        await wait_until(lambda: "session.waiting" in second.output, "it waits")
        async with httpx.AsyncClient(base_url=f"http://{LOOPBACK}:{port}", timeout=1) as web:
            await Probe(web).tells(503)
        await probe.tells(200)
