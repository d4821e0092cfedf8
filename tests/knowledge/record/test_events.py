"""Events reach the Redis stream, each at least once and a tenant's in order, whoever is away or dies in between."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from redis.asyncio import Redis

from context_builder.database.database import Database
from context_builder.knowledge import events
from context_builder.knowledge.events import EVENT_STREAM, EventRelay, cloud_event
from context_builder.knowledge.record import PackageRecord
from context_builder.storage.redis import client_for
from tests.knowledge.record.samples import START, TRACE, TRACEPARENT, begun, built, revision, source
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines


@asynccontextmanager
async def relaying(
    record: PackageRecord, redis: Redis, functions: Database | None = None, **options: Any
) -> AsyncIterator[EventRelay]:
    relay = EventRelay(functions or record._database, redis, record, tenant_id="lab", **options)
    await relay.startup()
    task = asyncio.create_task(relay.run(), name="relay")
    try:
        yield relay
    finally:
        await relay.shutdown()
        await task


async def relayed(redis: Redis) -> list[dict[str, Any]]:
    return [json.loads(fields[b"event"]) for _, fields in await redis.xrange(EVENT_STREAM)]


async def count(redis: Redis, least: int) -> bool:
    return await redis.xlen(EVENT_STREAM) >= least


async def test_what_happened_is_told_in_order_as_cloud_events(either: PackageRecord, redis: Redis) -> None:
    async with relaying(either, redis):
        await built(either, "cpk_1", START, [source("artifact:a", "A peculiar sentence.", "Peculiar")])
        await wait_until(lambda: count(redis, 2), "both events are in the stream")
    requested, package = await relayed(redis)
    assert requested | {"id": "", "data": {}} == {
        "specversion": "1.0", "id": "", "source": "/tenants/lab", "type": "context_builder.ContextBuildRequested",
        "subject": "cbr_cpk_1", "time": "2021-11-22T12:00:00+00:00", "datacontenttype": "application/json",
        "traceparent": TRACEPARENT, "data": {},
    }  # fmt: skip
    assert requested["id"] != package["id"]
    assert (package["type"], package["subject"]) == ("context_builder.ContextPackageBuilt", "cpk_1")
    assert package["data"] == {
        "contextPackageId": "cpk_1", "contextBuildRequestId": "cbr_cpk_1", "revision": 1, "taskId": "task-17",
        "traceId": TRACE, "policyDecisionId": "pdn_cpk_1_1", "graphProjectionId": "gpr_1", "tokenBudget": 4000,
        "tokensUsed": 12, "sources": 1, "denied": 1, "redacted": 0, "excluded": 0, "rebuilt": False, "tenantId": "lab",
    }  # fmt: skip
    assert "eculiar" not in json.dumps(await relayed(redis))


async def test_the_end_of_a_day_is_told(record: PackageRecord, redis: Redis) -> None:
    await built(record, "cpk_1", START)
    await record.finish("lab", revision("cpk_1", START + timedelta(days=1), [], number=2))
    async with relaying(record, redis):
        await wait_until(lambda: count(redis, 4), "all events are in the stream")
    anchored = next(one for one in await relayed(redis) if one["type"] == "context_builder.AuditAnchored")
    assert (anchored["subject"], anchored["data"]["count"]) == ("2021-11-22", 3)
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", anchored["traceparent"])
    row = {**anchored, "type": "AuditAnchored", "at": anchored["time"], "traceparent": ""}
    assert cloud_event("lab", row) == anchored  # told twice, it is the same


async def test_several_servers_relay_each_tenant_s_in_order(
    record: PackageRecord, redis: Redis, database: asyncpg.Connection
) -> None:
    async def build(tenant: str) -> None:
        for number in range(20):
            await built(record, f"cpk_{number}", START, tenant=tenant)

    async with relaying(record, redis), relaying(record, redis), relaying(record, redis):
        await asyncio.gather(*(build(f"tenant {place}") for place in range(4)))
        await wait_until(lambda: count(redis, 160), "all events are in the stream")
    assert await database.fetchval("SELECT count(*) FROM context_package_events") == 0
    for place in range(4):
        told = [one["subject"] for one in await relayed(redis) if one["source"] == f"/tenants/tenant%20{place}"]
        assert told == [subject for number in range(20) for subject in (f"cbr_cpk_{number}", f"cpk_{number}")]


async def test_while_redis_is_away_events_wait(record: PackageRecord, redis: Redis, redis_server: RedisServer) -> None:
    async with relaying(record, redis):
        redis_server.kill()
        try:
            await built(record, "cpk_1", START)
        finally:
            redis_server.start()
        async with client_for(redis_server.url) as reader:
            await wait_until(lambda: count(reader, 2), "both events are in the stream")
            assert [one["subject"] for one in await relayed(reader)] == ["cbr_cpk_1", "cpk_1"]


class DiesBeforeItIsDone:
    """SQL functions of a server that is gone as soon as the events are in the stream."""

    def __init__(self, functions: Database) -> None:
        self._database = functions
        self.name = functions.name
        self.is_dead = asyncio.Event()

    async def call(self, function: str, tenant_id: str, arguments: Mapping[str, Any]) -> list[Any]:
        if function == "context_package_events_done":
            self.is_dead.set()
            await asyncio.Event().wait()
        return await self._database.call(function, tenant_id, arguments)

    async def close(self) -> None: ...


async def test_when_one_dies_in_between_another_takes_over_and_nothing_is_lost(
    record: PackageRecord, redis: Redis, monkeypatch: pytest.MonkeyPatch, database: asyncpg.Connection
) -> None:
    monkeypatch.setattr(events, "LEASE", 0.5)
    await built(record, "cpk_1", START)
    dying = DiesBeforeItIsDone(record._database)
    task = asyncio.create_task(EventRelay(dying, redis, record, tenant_id="lab").run(), name="relay")
    await dying.is_dead.wait()
    task.cancel()
    await asyncio.wait([task])
    await begun(record, "cpk_2")
    async with relaying(record, redis):
        await wait_until(lambda: count(redis, 5), "the events are in the stream, two of them twice")
    told = [(one["id"], one["subject"]) for one in await relayed(redis)]
    assert [subject for _, subject in told] == ["cbr_cpk_1", "cpk_1", "cbr_cpk_1", "cpk_1", "cbr_cpk_2"]
    assert told[:2] == told[2:4]
    assert await database.fetchval("SELECT count(*) FROM context_package_events") == 0


async def test_the_stream_keeps_about_so_many(record: PackageRecord, redis: Redis) -> None:
    for number in range(150):
        await begun(record, f"cpk_{number}")
    async with relaying(record, redis, events_max=10):
        await wait_until(lambda: last_is(redis, "cbr_cpk_149"), "the last event is in the stream")
    assert await redis.xlen(EVENT_STREAM) < 150


async def last_is(redis: Redis, subject: str) -> bool:
    told = await relayed(redis)
    return bool(told) and told[-1]["subject"] == subject
