"""A worker has room for who talks: connections are few, the silent make way, and nobody is kept awake by an archive."""

from __future__ import annotations

import psutil
import pytest

from context_builder.fleet.sleepers import POSTPONED, SLEEPERS
from context_builder.session.keys import Keys
from tests.fleet.conftest import StartWorker
from tests.fleet.watching import Fleet, ready
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.engines, pytest.mark.slow]


async def test_the_longest_silent_session_makes_way_for_one_that_talks(start_worker: StartWorker, fleet: Fleet) -> None:
    """Though the archive, which is away, has not everything."""
    worker = start_worker(fleet_concurrency=2, raw_buffer_time_window=1)
    await ready(worker)
    await fleet.say("first")
    await fleet.hears("first")
    await fleet.say("second")
    await fleet.hears("second")
    for name in ("first", "second"):
        await wait_until(lambda name=name: fleet.redis.exists(Keys(name).outbox), f"{name} is summarized")
    await fleet.say("third")
    await fleet.hears("third")
    assert set(await fleet.owners("first", "second", "third")) == {"second", "third"}
    assert await fleet.redis.zscore(SLEEPERS, "first")
    assert await fleet.redis.zscore(POSTPONED, "first")
    await fleet.say("first")
    await fleet.hears("first")


async def test_three_hundred_sessions_need_few_connections_and_files(start_worker: StartWorker, fleet: Fleet) -> None:
    names = [f"session-{number}" for number in range(300)]
    await fleet.redis.config_set("maxclients", 90)
    try:
        worker = start_worker()
        await ready(worker)
        await fleet.say(*names)
        await fleet.hears(*names)
        clients = len(await fleet.redis.client_list())
        files = psutil.Process(worker.process.pid).num_fds()
    finally:
        await fleet.redis.config_set("maxclients", 10_000)
    assert clients < 80
    assert files < 200
