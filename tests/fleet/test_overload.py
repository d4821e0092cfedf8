"""An overloaded worker on a real Redis takes no session, and keeps those it has; the sessions are stand-ins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import cast

import pytest
from redis.asyncio import Redis

from context_builder.fleet import worker
from context_builder.fleet.config import FleetConfig
from context_builder.fleet.process import Workload, WorkloadMeter
from context_builder.fleet.worker import POLL, TAKEN_ALL_THE_SAME, FleetWorker
from context_builder.session.config import SessionConfig
from context_builder.session.host import open_host
from context_builder.session.keys import Keys
from context_builder.session.session import Session
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

NORMAL, OVERLOADED = Workload(), Workload(lag=1.0, cpu=1.0, overloaded=True)


class Sessions:
    """The ids of the sessions that the worker runs."""

    def __init__(self) -> None:
        self.running: set[str] = set()

    def make(self, session_id: str) -> Session:
        stop = asyncio.Event()

        async def serve() -> None:
            self.running.add(session_id)
            await stop.wait()
            self.running.remove(session_id)

        idle = SimpleNamespace(
            session_id=session_id,
            told_to_stop=stop,
            ready=asyncio.Event(),
            is_served=True,
            is_idle=lambda _: False,
            serve=serve,
            stop=stop.set,
            hand_over=stop.set,
        )
        return cast(Session, idle)


@pytest.fixture
def meter() -> WorkloadMeter:
    return WorkloadMeter()


@pytest.fixture
async def sessions(redis: Redis, redis_server: RedisServer, meter: WorkloadMeter) -> AsyncIterator[Sessions]:
    """The sessions of a worker, which runs meanwhile."""
    sessions, stop = Sessions(), asyncio.Event()
    config = FleetConfig()
    async with open_host(redis, SessionConfig()) as host, asyncio.TaskGroup() as tasks:
        subject = FleetWorker(
            "here", redis_server.url, redis, sessions.make, config, SessionConfig(), meter, host.arrivals
        )
        tasks.create_task(subject.run(stop))
        yield sessions
        stop.set()


async def test_an_overloaded_worker_keeps_its_sessions_and_takes_more_once_relieved(
    redis: Redis, meter: WorkloadMeter, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "LEFT_ALONE", 3600)
    await redis.lpush(Keys("monday").input, "{}")
    await wait_until(lambda: sessions.running == {"monday"}, "the worker takes a session")

    meter.now = OVERLOADED
    for _ in range(2):  # what docket read at the first time, which may still take a session, is over at the second
        for key in await published(redis):
            await redis.delete(key)
        await wait_until(lambda: is_published(redis, OVERLOADED), "the worker says that it is overloaded")
    await redis.lpush(Keys("tuesday").input, "{}")
    await wait_until(lambda: is_offered(redis, "tuesday"), "the session is offered to workers")
    await asyncio.sleep(10 * POLL.total_seconds())  # nothing tells that a worker leaves one alone: it has ten occasions
    assert sessions.running == {"monday"}

    meter.now = NORMAL
    await wait_until(lambda: sessions.running == {"monday", "tuesday"}, "it takes the other session")


async def test_sessions_that_all_workers_leave_alone_are_run_by_an_overloaded_one(
    redis: Redis, meter: WorkloadMeter, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "LEFT_ALONE", 0.5)
    meter.now = OVERLOADED
    await wait_until(lambda: is_published(redis, OVERLOADED), "the worker says that it is overloaded")
    ids = {f"session-{number}" for number in range(TAKEN_ALL_THE_SAME + 2)}
    for session_id in ids:
        await redis.lpush(Keys(session_id).input, "{}")
    await wait_until(lambda: sessions.running == ids, "it takes all of them in the end")


async def published(redis: Redis) -> list[bytes]:
    """The keys of workloads."""
    return [key async for key in redis.scan_iter("context_builder_fleet:workload:*")]


async def is_published(redis: Redis, workload: Workload) -> bool:
    return [Workload.read(await redis.get(key)) for key in await published(redis)] == [workload]


async def is_offered(redis: Redis, session_id: str) -> bool:
    keys = [key async for key in redis.scan_iter(f"*session:{session_id}*")]
    return bool(keys)
