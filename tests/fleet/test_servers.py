"""A fleet on two Redis servers: each has its own sessions, and one that is away stops these alone."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from context_builder.session.keys import Keys
from context_builder.storage.redis import client_for
from tests.fleet.conftest import StartWorker
from tests.fleet.watching import Fleet, ready, said
from tests.services.command import command
from tests.services.daemon import Daemon
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.engines, pytest.mark.slow]

NAMES = [f"session-{number}" for number in range(6)]


@pytest.fixture
def second_server(tmp_path: Path) -> Iterator[RedisServer]:
    (tmp_path / "second").mkdir()
    server = RedisServer(tmp_path / "second", "--notify-keyspace-events", "El")
    server.start()
    yield server
    server.kill()


@pytest.fixture
async def second(second_server: RedisServer) -> AsyncIterator[Fleet]:
    async with client_for(second_server.url) as client:
        yield Fleet(client)


@pytest.fixture
def urls(redis_server: RedisServer, second_server: RedisServer) -> str:
    return f"{redis_server.url} {second_server.url}?tenant=lab"


SERVERS_AWAY = {"supabase_url": "http://127.0.0.1:1", "supabase_key": "sb_x"}


def asked(folder: Path, urls: str, *arguments: str) -> str:
    """What a command prints that succeeds."""
    done = command(folder, *arguments, redis_urls=urls, **SERVERS_AWAY)
    assert done.exit_code == 0, done.output
    return done.output


def status(folder: Path, urls: str) -> dict[str, Any]:
    """What it prints for programs, from among what it logs, if anything."""
    output = asked(folder, urls, "fleet", "status", "--json")
    found: dict[str, Any]
    found, _ = json.JSONDecoder().raw_decode(output, f"\n{output}".index("\n{"))
    return found


async def test_a_worker_stops_though_a_server_is_frozen(
    start_worker: StartWorker, fleet: Fleet, second: Fleet, second_server: RedisServer, urls: str
) -> None:
    worker = start_worker(redis_urls=urls, redis_url="")
    await ready(worker)
    await fleet.say("monday")
    await second.say("lab-1")
    await fleet.hears("monday")
    await second.hears("lab-1")
    os.kill(second_server.pid, signal.SIGSTOP)
    try:
        code = await asyncio.to_thread(worker.stop)
    finally:
        os.kill(second_server.pid, signal.SIGCONT)
    assert code == 0, worker.output
    assert said(worker, "fleet.server_silent")


async def test_a_server_that_is_away_stops_its_own_sessions_until_it_is_back(
    start_worker: StartWorker, fleet: Fleet, second: Fleet, second_server: RedisServer, urls: str
) -> None:
    await fleet.redis.config_set("notify-keyspace-events", "El")
    second_server.kill()
    worker = start_worker(redis_urls=urls, redis_url="")
    await ready(worker)
    await wait_until(lambda: said(worker, "fleet.server_away"), "a server is missed")
    await fleet.say(*NAMES)
    await fleet.hears(*NAMES)
    second_server.start()
    await second.say("lab-1", "lab-2")
    await second.hears("lab-1", "lab-2")
    second_server.kill()
    await fleet.say(*NAMES, "monday")
    await fleet.hears(*NAMES, "monday")
    found = status(worker.folder, urls)
    assert found["away"] == [f"127.0.0.1:{second_server.port}/0"]
    assert len(found["sessions"]) == len(NAMES) + 1
    await wait_until(lambda: worker.output.count('"fleet.server_away"') == 2, "it is missed again")
    second_server.start()
    await second.redis.connection_pool.disconnect()
    await second.say("lab-1", "lab-2", "lab-3")
    await second.hears("lab-1", "lab-2", "lab-3")

    def is_on_both() -> bool:
        found = status(worker.folder, urls)
        return found["away"] == [] and {one["server"] for one in found["workers"]} == set(urls_named(urls))

    await wait_until(is_on_both, "the worker's next heartbeat is on the server that is back")
    worker.process.terminate()
    assert worker.wait() == 0, worker.output
    assert worker.output.count('"fleet.server_away"') == 2
    assert await fleet.owners(*NAMES) == {}
    assert await second.owners("lab-1", "lab-2", "lab-3") == {}


def test_a_server_that_refuses_is_named(tmp_path: Path, redis_server: RedisServer) -> None:
    (tmp_path / "refusing").mkdir()
    refusing = RedisServer(tmp_path / "refusing", "--requirepass", "right")
    refusing.start(password="right")
    try:
        wrong = f"redis://:wrong@127.0.0.1:{refusing.port}/0"
        with Daemon(tmp_path, "fleet", redis_urls=f"{redis_server.url} {wrong}", **SERVERS_AWAY) as worker:
            assert worker.wait(60) == 1
            output = worker.output
    finally:
        refusing.kill()
    assert output.startswith(f"context-builder: Redis at 127.0.0.1:{refusing.port}: Redis refuses the password")
    assert "wrong" not in output


async def test_a_server_may_be_a_unix_socket_of_this_machine(start_worker: StartWorker, tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir()
    socket = tmp_path / "s"
    server = RedisServer(tmp_path / "redis", "--unixsocket", str(socket), "--notify-keyspace-events", "El")
    server.start()
    try:
        async with client_for(f"unix://{socket}") as client:
            fleet = Fleet(client)
            worker = start_worker(redis_urls=f"unix://{socket}?db=2 unix://{socket}?tenant=lab&db=0", redis_url="")
            await ready(worker)
            await fleet.say("monday")
            await fleet.hears("monday")
    finally:
        server.kill()


def urls_named(urls: str) -> list[str]:
    return [url.removeprefix("redis://").partition("?")[0] for url in urls.split()]


async def test_commands_find_a_session_where_it_is(fleet: Fleet, second: Fleet, urls: str, tmp_path: Path) -> None:
    await second.say("monday")
    asked(tmp_path, urls, "send", "monday", "Hello", "--speaker", "Ann")
    assert await second.redis.llen(Keys("monday").input) == 2
    assert await fleet.redis.exists(Keys("monday").input) == 0
    asked(tmp_path, urls, "send", "tuesday", "Hello", "--speaker", "Ann")
    assert await fleet.redis.llen(Keys("tuesday").input) == 1  # the one whose sessions are this tenant's
    found = orjson.loads(asked(tmp_path, urls, "sessions", "--json"))
    assert {one["session_id"] for one in found} == {"monday", "tuesday"}
