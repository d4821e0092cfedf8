"""The published bounds: of time with many policies, of when events are told, of what one caller's feedback moves."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from context_builder.knowledge.events import EVENT_STREAM
from context_builder.server.access.caller import Role
from tests.server.test_contract import BUILD, built, put, tenant, writer
from tests.server.test_contract_rules import path
from tests.services.api_server import ApiServer
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines
__all__ = ["tenant", "writer"]  # fixtures

FEW, MANY = 100, 1_000
"""Policies."""

NOISE = 3
"""How much slower a machine may be for reasons of its own."""


async def fastest_build(client: httpx.AsyncClient, times: int = 7) -> float:
    """Seconds that the fastest of some builds takes."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        assert len((await built(client, tokenBudget=4000))["sources"]) == 20
        taken.append(time.perf_counter() - started)
    return min(taken)


async def test_ten_times_the_policies_take_a_build_no_more_than_ten_times_as_long(api: ApiServer, tenant: str) -> None:
    async with api.client(api.key(Role.ADMIN, tenant)) as client:
        for place in range(20):  # decided one by one: no two have the same tags
            await put(client, f"artifact:{place}", content=f"Hydrophone clips of day {place}.", tags=[f"day-{place}"])

        async def govern(first: int, last: int) -> None:
            for start in range(first, last, 100):
                numbers = range(start, min(start + 100, last))
                forbid = 'forbid (principal, action, resource) when {{ resource.tags.contains("no-{}") }};'
                text = "\n".join(forbid.format(number) for number in numbers)
                answer = await client.put(f"/knowledge/policies/many-{start}", content=text)
                assert answer.status_code == 200, answer.text

        await govern(0, FEW)
        few = await fastest_build(client)
        await govern(FEW, MANY)
        assert await fastest_build(client) < NOISE * MANY / FEW * few
        await put(client, "artifact:0", tags=[f"no-{MANY - 1}"])
        assert (await built(client, tokenBudget=4000))["denied"] == 1


async def events_of(redis: Redis, tenant: str) -> list[dict[str, Any]]:
    """The events of a tenant that have been told, in their order."""
    events = [json.loads(fields[b"event"]) for _, fields in await redis.xrange(EVENT_STREAM)]
    return [one for one in events if one["source"] == f"/tenants/{tenant}"]


async def test_each_call_s_events_are_told_soon_after_it(writer: httpx.AsyncClient, tenant: str, redis: Redis) -> None:
    async def soon(*more: tuple[str, str, int | None]) -> None:
        """These are told next, and nothing else."""
        expected.extend(more)

        async def told() -> bool:
            return len(await events_of(redis, tenant)) >= len(expected)

        await wait_until(told, f"{len(expected)} events are told")
        events = await events_of(redis, tenant)
        forms = [(one["type"].split(".")[1], one["subject"], one["data"].get("revision")) for one in events]
        assert forms == expected

    async def four() -> list[dict[str, Any]]:
        events = await events_of(redis, tenant)
        return events if len(events) == 4 else []

    expected: list[tuple[str, str, int | None]] = []
    async with writer as client:
        await put(client)
        package = await built(client, taskId="task-17")
        package_id, request_id = package["contextPackageId"], package["contextBuildRequestId"]
        await soon(("ContextBuildRequested", request_id, None), ("ContextPackageBuilt", package_id, 1))
        listed = (await client.get("/knowledge/context", params={"taskId": "task-17"})).json()["packages"]
        assert [one["contextPackageId"] for one in listed] == [package_id]
        await redis.delete(f"context_builder:package:{package_id}")
        assert (await client.get(path(package))).json()["revision"] == 2
        await soon(("ContextPackageBuilt", package_id, 2))
        assert (await client.get(path(package))).headers["x-context-cache"] == "hit"
        asked = {"intent": "clips", "tokenBudget": 1, "pinned": ["artifact:protocol"]}
        assert (await client.post(BUILD, json=asked)).status_code == 409
        failed = (await wait_until(four, "the request that failed is told"))[3]
        await soon(("ContextBuildRequested", failed["subject"], None))


async def test_each_caller_moves_a_signal_by_a_twentieth_at_most(
    api: ApiServer, writer: httpx.AsyncClient, tenant: str
) -> None:
    keys = [api.new_key(Role.READER, tenant).secret for _ in range(3)]
    async with writer as client:
        await put(client, kind="pattern")  # its reuse counts double
        packages = [await built(client) for _ in range(4)]

        async def signals() -> dict[str, float]:
            (source,) = (await built(client))["sources"]
            found: dict[str, float] = source["signals"]
            return found

        async def rate(key: str, helped: float) -> None:
            """Rate every package again and again."""
            async with api.client(key) as caller:
                for package in packages * 3:
                    body = {"outcome": helped, "helped": {"artifact:protocol": helped}}
                    assert (await caller.post(path(package, "/feedback"), json=body)).status_code == 204

        measured = [await signals()]
        for key in keys:
            await rate(key, 1)
            measured.append(await signals())
        for name in ("quality", "reuse"):
            values = [one[name] for one in measured]
            assert all(0 < after - before <= 0.05 + 1e-9 for before, after in pairwise(values)), (name, values)
            assert values[2] - values[0] > 0.05, (name, values)
        for key in keys:
            await rate(key, 0)
        after = await signals()
        for name in ("quality", "reuse"):
            assert 0 <= after[name] < measured[-1][name]
            assert abs(after[name] - measured[0][name]) <= 0.05 * len(keys) + 1e-9
