"""A long conversation stays smooth: few rows in the document, and no task that one would notice."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import orjson
import pytest
from playwright.async_api import expect
from redis.asyncio import Redis

from context_builder.domains import DOMAINS
from context_builder.memory.memory import Memory
from context_builder.memory.sql_memory import PostgresMemory
from tests.services.api_server import TENANT, ApiServer
from tests.services.chromium import Visitor

pytestmark = [pytest.mark.engines, pytest.mark.slow]

HISTORY = 10_000
RATE = 100
SECONDS = 5
LONGEST = 50.0
"""Milliseconds of the processor's time; a machine that is busy with others takes longer."""

WORDS = "the hydrophone in the bay heard humpbacks sing while kelp and boats drift past at dawn".split()


def message(number: int, begin: float) -> dict[str, Any]:
    """A message of the published buffer."""
    at = begin + number / RATE
    return {
        "id": number,
        "message_number": number,
        "speaker": f"Speaker_{number % 7}",
        "text": " ".join(WORDS[(number + place) % len(WORDS)] for place in range(5 + number % 30)),
        "time": at,
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(at)),
        "buffer_entry_time": at,
        "type": "user",
        "keywords": ["hydrophone", "bay"],
        "domains": [DOMAINS[(number // 400) % 5]],
        "domain_confidence": {DOMAINS[(number // 400) % 5]: 0.9},
    }


async def publish(redis: Redis, newest: int, begin: float) -> None:
    """Publish what a session would with so many messages, of which the last 500 are in its buffer."""
    points = [
        {"id": one, "text": f"Point {one}", "kind": "claim", "speakers": ["Ida"], "ids": [1 + one * 90], "time": begin}
        for one in range(40)
    ]
    state = {
        "session_id": "long",
        "rolling_summary": {"points": points, "message_count": newest},
        "raw_recent_buffer": [message(one, begin) for one in range(max(1, newest - 499), newest + 1)],
        "current_domains": [DOMAINS[0]],
        "domain_confidence": {DOMAINS[0]: 0.9},
        "received_messages": newest,
        "last_message_time": time.time(),
        "revision": newest,
        "updated_at": time.time(),
    }
    said = {"silence": False, "last_message_time": time.time()}
    await redis.set("conversation_state:long", orjson.dumps(said), ex=10)
    await redis.set("context_builder:long:state", orjson.dumps(state), ex=3600)


async def test_ten_thousand_messages_and_a_hundred_a_second(api: ApiServer, redis: Redis, visitor: Visitor) -> None:
    begin = time.time() - HISTORY / RATE
    memory = PostgresMemory(api.database_url)
    for first in range(1, HISTORY + 1, 1000):
        told = [message(number, begin) for number in range(first, first + 1000)]
        await memory.remember(
            TENANT,
            [
                Memory(
                    f"long:message:{one['id']}",
                    one["text"],
                    session_id="long",
                    speaker=one["speaker"],
                    position=one["id"],
                    tags=tuple(one["domains"]),
                )
                for one in told
            ],
        )
    await memory.close()
    head = {"last_id": HISTORY}
    await redis.hset("context_builder:long:checkpoint", "head", orjson.dumps(head).decode())  # type: ignore[misc]
    await publish(redis, HISTORY, begin)
    page = visitor.page
    await page.goto("/ui/sessions/long")
    await expect(page.locator(".message").last).to_be_visible()
    await expect(page.locator("[data-live=on]")).to_be_visible()
    cdp = await visitor.context.new_cdp_session(page)
    trace: list[dict[str, Any]] = []
    cdp.on("Tracing.dataCollected", lambda data: trace.extend(data["value"]))
    done = asyncio.Event()
    cdp.on("Tracing.tracingComplete", lambda _: done.set())
    await cdp.send("Tracing.start", {"categories": "toplevel,devtools.timeline,__metadata"})
    most_rows = 0

    async def look() -> None:
        nonlocal most_rows
        rows = await page.evaluate("document.querySelectorAll('.message').length")
        most_rows = max(most_rows, rows)

    newest = HISTORY
    loop = asyncio.get_running_loop()
    began = loop.time()
    while loop.time() - began < SECONDS:  # a hundred messages a second, read while it goes on
        newest = HISTORY + int((loop.time() - began) * RATE)
        await publish(redis, newest, begin)
        if loop.time() - began > SECONDS / 2:
            await page.mouse.move(400, 500)
            await page.mouse.wheel(0, -3000)
        await look()
        await asyncio.sleep(0.1)
    await page.locator(".point-button").nth(38).click()  # the second point, whose message is the 91st of all
    await expect(page.locator("#m91")).to_be_visible()
    await expect(page.locator("#m91")).to_have_class("message lit")
    await look()
    await page.get_by_role("button", name="Jump to the newest").click()
    await expect(page.locator(f"#m{newest}")).to_be_visible()
    await look()
    await cdp.send("Tracing.end")
    await done.wait()
    tasks = main_thread_tasks(trace)
    print(json.dumps({"rows": most_rows, "tasks": len(tasks), "longest ms": [round(one, 1) for one in tasks[:5]]}))
    assert most_rows < 500
    assert len(tasks) > 100
    assert tasks[0] < LONGEST


def main_thread_tasks(trace: list[dict[str, Any]]) -> list[float]:
    """Milliseconds of the processor's time that each task of the page took, the longest first; but for those that only
    answer what this test asks through the debugger."""
    mains = {
        (one["pid"], one["tid"])
        for one in trace
        if one.get("name") == "thread_name" and one["args"]["name"] == "CrRendererMain"
    }
    own = [one for one in trace if "dur" in one and (one["pid"], one["tid"]) in mains]
    asked = [one["ts"] for one in own if "DevToolsSession" in str(one.get("args"))]
    tasks = [
        one.get("tdur", one["dur"]) / 1000
        for one in own
        if one["name"].endswith("RunTask") and not any(one["ts"] <= at <= one["ts"] + one["dur"] for at in asked)
    ]
    return sorted(tasks, reverse=True)
