"""A clock that stands still, sessions on a real Redis, and the proof that they leave nothing behind."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from context_builder.knowledge.events import EVENT_STREAM
from context_builder.session import keys, relays
from context_builder.session.config import SessionConfig
from context_builder.session.host import open_host
from context_builder.session.store import store
from context_builder.storage.redis import client_for
from context_builder.testing import ManualClock
from tests.services.redis_server import RedisServer
from tests.services.waiting import PATIENCE
from tests.session.live import TICK, Live

LIVING_WITH_THE_SESSION = re.findall(
    r"^    ``(\w+)`` .*  (?:session|producers')$", keys.Keys.__doc__ or "", re.MULTILINE
)


ALONE, HOSTED = "alone", "hosted"
HOSTED_TOO = pytest.mark.parametrize("live", [ALONE, HOSTED], indirect=True)
"""Marks tests of what sessions do by themselves and with a host."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is not to be taken for a Redis that stalls."""
    monkeypatch.setattr(store, "RELEASE_TIMEOUT", PATIENCE)


@pytest.fixture
async def live(
    redis: Redis, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[Live]:
    """Runs sessions by themselves, or with a host where a test is ``HOSTED_TOO``; afterwards they are stopped, and no
    task and no undocumented key is left.
    """
    monkeypatch.setattr(relays, "LONGEST_WAIT", 0.05)  # a receiver that is back is asked soon, however long it was away
    patient = Redis.from_url(redis_server.url, retry=Retry(NoBackoff(), 3))  # tests restart Redis
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(patient)
        client = await stack.enter_async_context(client_for(redis_server.url))
        host = None
        if getattr(request, "param", ALONE) == HOSTED:
            host = await stack.enter_async_context(open_host(client, SessionConfig(tick=TICK)))
        running = Live(client, patient, host)
        yield running
        for session in list(running.tasks):
            session.stop()
        await asyncio.gather(*running.tasks.values(), return_exceptions=True)
        assert [task.get_name() for task in asyncio.all_tasks() if "monday" in task.get_name()] == []
        assert await living_for_good(patient) == set()


async def living_for_good(redis: Redis) -> set[str]:
    """Keys without expiry that ``keys.py`` does not document as living with their session, or for good."""
    documented = {keys.FENCE, keys.SESSIONS, keys.SUMMARY_SEQS, keys.FORGOTTEN, EVENT_STREAM}
    found = [key.decode() async for key in redis.scan_iter(count=1000)]
    return {
        key
        for key in found
        if key not in documented
        and key.rpartition(":")[2] not in LIVING_WITH_THE_SESSION
        and await redis.ttl(key) == -1
    }
