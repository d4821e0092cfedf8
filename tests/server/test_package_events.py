"""What the server builds is told in the Redis stream of events."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from context_builder.knowledge.events import EVENT_STREAM
from context_builder.server.access.caller import Role
from context_builder.storage.redis import client_for
from tests.services.api_server import ApiServer
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines


async def test_a_build_is_told_with_the_caller_s_trace(api: ApiServer, redis_server: RedisServer) -> None:
    trace = uuid4().hex
    asked = {"intent": "hydrophone clips", "tokenBudget": 1000}
    headers = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
    async with api.client(api.key(Role.WRITER, f"lab-{trace}")) as client:
        package = (await client.post("/knowledge/context/build", json=asked, headers=headers)).json()

    async with client_for(redis_server.url) as redis:

        async def told() -> list[dict[str, Any]]:
            events = [json.loads(fields[b"event"]) for _, fields in await redis.xrange(EVENT_STREAM)]
            of_tenant = [one for one in events if one["source"] == f"/tenants/lab-{trace}"]
            return of_tenant if len(of_tenant) == 2 else []

        requested, built = await wait_until(told, "both events are in the stream")
    assert requested["subject"] == package["contextBuildRequestId"]
    assert (built["subject"], built["data"]["revision"]) == (package["contextPackageId"], 1)
    assert trace in requested["traceparent"]
    assert trace in built["traceparent"]
