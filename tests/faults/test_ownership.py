"""One owner: a second process waits, takes over when it may, and the first can then write no more."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import psutil
import pytest
from redis.asyncio import Redis

from tests.faults.forks import Forks
from tests.faults.owners import Owners
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines

HOUR = 3600.0


@pytest.fixture
async def owners(redis: Redis, redis_server: RedisServer, tmp_path: Any) -> AsyncIterator[Owners]:
    async with Forks(tmp_path) as forks:
        yield Owners(forks, redis, redis_server.url)


async def test_a_restart_after_a_kill_does_not_wait_for_the_lease(owners: Owners) -> None:
    first = await owners.start(lease=HOUR)
    await wait_until(lambda: owners.owns(first), "the first owns the session")
    await owners.say(1)
    await wait_until(lambda: owners.shows(1), "its message is published")
    await owners.kill(first)
    await owners.say(2)
    second = await owners.start()
    await wait_until(lambda: owners.shows(1, 2), "the second publishes")
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
    second = await owners.start(lease=HOUR)
    await owners.say(2, 3)
    await wait_until(lambda: owners.shows(1, 2, 3), "the second took over and published")
    os.kill(first, signal.SIGCONT)
    await owners.say(4)
    await wait_until(lambda: not psutil.pid_exists(first), "the first has ended")
    await wait_until(lambda: owners.shows(1, 2, 3, 4), "nothing is missing or doubled")
    assert await owners.owns(second)
    assert f"now run by process {second}" in owners.said()
