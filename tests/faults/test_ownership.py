"""One owner: a second process waits, takes over when it may, and the first can then write no more."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import AsyncIterator
from typing import Any

import psutil
import pytest
from redis.asyncio import Redis

from context_builder.session.keys import Keys
from tests.faults.forks import Forks
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines

SESSION = "monday"
KEYS = Keys(SESSION)


class Owners:
    """Processes that want to run the session."""

    def __init__(self, forks: Forks, redis: Redis, url: str) -> None:
        self.redis = redis
        self._forks = forks
        self._url = url

    async def start(self, *options: str, lease: float = 10) -> int:
        environ = {"REDIS_URL": self._url, "LEASE_TIME": str(lease), "DATABASE_URL": "postgresql://127.0.0.1:9/none"}
        return await self._forks.start(environ, "run", SESSION, *options)

    async def kill(self, pid: int) -> None:
        await self._forks.kill(pid)

    async def owns(self, pid: int) -> bool:
        return (await self._owner()).get("pid") == pid and bool(await self.redis.exists(KEYS.state))

    async def say(self, *numbers: int) -> None:
        await self.redis.lpush(
            KEYS.input, *(json.dumps({"text": f"message {number}", "message_number": number}) for number in numbers)
        )

    async def shows(self, *numbers: int) -> bool:
        state = json.loads(await self.redis.get(KEYS.state) or b"{}")
        return [entry["message_number"] for entry in state.get("raw_recent_buffer", [])] == [*numbers]

    def said(self) -> str:
        return self._forks.log.read_text() if self._forks.log.exists() else ""

    async def _owner(self) -> dict[str, Any]:
        return json.loads(await self.redis.get(KEYS.owner) or b"{}")


@pytest.fixture
async def owners(redis: Redis, redis_server: RedisServer, tmp_path: Any) -> AsyncIterator[Owners]:
    async with Forks(tmp_path) as forks:
        yield Owners(forks, redis, redis_server.url)


async def test_a_restart_after_a_kill_publishes_within_two_seconds(owners: Owners) -> None:
    first = await owners.start()
    await wait_until(lambda: owners.owns(first), "the first owns the session")
    await owners.say(1)
    await wait_until(lambda: owners.shows(1), "its message is published")
    await owners.kill(first)
    killed = time.monotonic()
    await owners.say(2)
    second = await owners.start()
    await wait_until(lambda: owners.shows(1, 2), "the second publishes")
    assert time.monotonic() - killed < 2
    assert await owners.owns(second)


async def test_a_second_process_waits_and_names_the_holder(owners: Owners) -> None:
    first = await owners.start()
    await wait_until(lambda: owners.owns(first), "the first owns the session")
    second = await owners.start()
    await wait_until(lambda: f"process {first}" in owners.said(), "the second names the first")
    assert await owners.owns(first)
    await owners.kill(first)
    await wait_until(lambda: owners.owns(second), "the second goes on")


async def test_a_takeover_ends_the_first_visibly(owners: Owners) -> None:
    first = await owners.start()
    await wait_until(lambda: owners.owns(first), "the first owns the session")
    second = await owners.start("--takeover")
    await wait_until(lambda: owners.owns(second), "the second took the session")
    await wait_until(lambda: not psutil.pid_exists(first), "the first has ended")
    assert f"now run by process {second}" in owners.said()


@pytest.mark.slow
async def test_a_paused_owner_that_was_replaced_cannot_commit(owners: Owners) -> None:
    first = await owners.start(lease=1.5)
    await wait_until(lambda: owners.owns(first), "the first owns the session")
    await owners.say(1)
    await wait_until(lambda: owners.shows(1), "its message is published")
    os.kill(first, signal.SIGSTOP)
    second = await owners.start(lease=1.5)
    await owners.say(2, 3)
    await wait_until(lambda: owners.shows(1, 2, 3), "the second took over and published")
    os.kill(first, signal.SIGCONT)
    await owners.say(4)
    await wait_until(lambda: not psutil.pid_exists(first), "the first has ended")
    await wait_until(lambda: owners.shows(1, 2, 3, 4), "nothing is missing or doubled")
    assert await owners.owns(second)
    assert f"now run by process {second}" in owners.said()
