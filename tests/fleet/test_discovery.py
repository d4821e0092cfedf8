"""What a worker asks docket to start, of all that it hears."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from context_builder.fleet.discovery import Discovery
from context_builder.fleet.sleepers import POSTPONED
from context_builder.session.config import SessionConfig
from context_builder.session.host import open_host
from context_builder.session.keys import SESSIONS, Keys
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines


class Asked:
    """Counts how often each session was to be started."""

    discovery: Discovery

    def __init__(self) -> None:
        self.times: Counter[str] = Counter()

    async def start(self, session_ids: Collection[str]) -> None:
        self.times.update(session_ids)


@pytest.fixture
async def asked(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Asked]:
    monkeypatch.setattr("context_builder.fleet.discovery.ASK_AGAIN", 0.05)
    await redis.config_set("notify-keyspace-events", "El")
    asked = Asked()
    async with open_host(redis, SessionConfig()) as host:
        discovery = Discovery(redis, 60, asked.start, lambda session_id: False, host.arrivals)
        asked.discovery = discovery
        running = asyncio.create_task(discovery.run())
        await wait_until(lambda: host.arrivals.are_announced, "it hears pushes")
        yield asked
        running.cancel()


async def push(redis: Redis, *session_ids: str) -> None:
    for session_id in session_ids:
        await redis.lpush(Keys(session_id).input, "{}")


async def test_a_session_that_somebody_owns_is_started_once_however_often_it_is_pushed_to(
    redis: Redis, asked: Asked
) -> None:
    await redis.set(Keys("monday").owner, "{}")

    async def tuesday_is_asked_for_again() -> bool:
        await push(redis, "monday", "tuesday")
        return asked.times["tuesday"] >= 3

    await wait_until(tuesday_is_asked_for_again, "tuesday, which nobody owns, is asked for again and again")
    assert asked.times["monday"] == 1
    await redis.delete(Keys("monday").owner)
    await push(redis, "monday")
    await wait_until(lambda: asked.times["monday"] == 2, "it is asked for once nobody owns it")


async def test_when_redis_begins_to_report_pushes_what_came_before_is_looked_for(
    redis: Redis, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("context_builder.fleet.discovery.DEAF_AFTER", 0.3)
    monkeypatch.setattr("context_builder.session.arrivals.PROBE_SECONDS", 0.1)
    await redis.config_set("notify-keyspace-events", "")
    with capture_logs() as logs:
        await wait_until(lambda: "fleet.scans" in events(logs), "it hears no pushes any more")
        await push(redis, "monday")
        await redis.config_set("notify-keyspace-events", "El")
        await wait_until(lambda: "fleet.hears_pushes" in events(logs), "it hears pushes again")
    await wait_until(lambda: asked.times["monday"], "what was pushed meanwhile is found")
    await push(redis, "tuesday")
    await wait_until(lambda: asked.times["tuesday"], "what is pushed is heard of")


def events(logs: Sequence[Mapping[str, Any]]) -> list[str]:
    return [entry["event"] for entry in logs]


@pytest.mark.parametrize("name", ["pending", "outbox", "memory_outbox"])
async def test_work_that_nobody_tells_of_is_found(redis: Redis, asked: Asked, name: str) -> None:
    """What a terminal left when it ended, or a restore brought back."""
    await redis.zadd(SESSIONS, {"buffered": 1, "listed": 2, "settled": 3, "run": 4, "postponed": 5})
    await redis.hset(Keys("buffered").checkpoint, mapping={"order": "[]", "m:7": "{}", "m:8": "{}"})
    await redis.hset(Keys("settled").checkpoint, mapping={"order": "[]", "c:8": "{}"})
    for session_id in ("listed", "run", "postponed"):
        await redis.lpush(getattr(Keys(session_id), name), "x")
    await redis.set(Keys("run").owner, "{}")
    await redis.zadd(POSTPONED, {"postponed": 2**40})
    asked.discovery._scan_now.set()
    await wait_until(lambda: {"buffered", "listed"} <= {*asked.times}, "both are started")
    await redis.zadd(SESSIONS, {"later": 6})
    await redis.lpush(getattr(Keys("later"), name), "x")
    asked.discovery._scan_now.set()
    await wait_until(lambda: asked.times["later"], "another scan has passed by all of them")
    assert {*asked.times} == {"buffered", "listed", "later"}


async def test_messages_that_a_summary_leaves_are_no_work(redis: Redis, asked: Asked) -> None:
    asked.discovery._keep_last = 2
    await redis.zadd(SESSIONS, {"kept": 1, "more": 2})
    await redis.hset(Keys("kept").checkpoint, mapping={"m:7": "{}", "m:8": "{}"})
    await redis.hset(Keys("more").checkpoint, mapping={"m:7": "{}", "m:8": "{}", "m:9": "{}"})
    asked.discovery._scan_now.set()
    await wait_until(lambda: asked.times["more"], "the one with more is started")
    assert not asked.times["kept"]
