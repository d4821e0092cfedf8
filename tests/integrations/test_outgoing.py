"""What frameworks report in events is said in order, whether or not Redis is there at once."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from context_builder.errors import StoreError, StoreUnavailable
from context_builder.integrations.live_session import LiveSession, Outgoing
from tests.integrations.conftest import queued
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines


async def test_it_is_said_in_order_and_the_rest_at_the_end(live: LiveSession, redis: Redis) -> None:
    outgoing = Outgoing(live)
    outgoing.hear("Ida", "How deep is it?")
    outgoing.answer("Forty metres.")
    outgoing.hear(None, "Thanks.")
    outgoing.hear("Ida", "   ")
    await outgoing.close()
    assert [(one["speaker"], one["text"]) for one in await queued(redis)] == [
        ("Ida", "How deep is it?"),
        ("Consilience", "Forty metres."),
        ("Unknown", "Thanks."),
    ]
    await outgoing.close()
    outgoing.hear("Ida", "After all.")
    await outgoing.close()
    assert len(await queued(redis)) == 4


async def test_it_waits_for_redis_and_says_what_it_could_not_say(
    live: LiveSession, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = asyncio.Event()
    hear = live.hear

    async def sometimes(speaker: str | None, text: str, at: datetime | None = None) -> None:
        if text == "refused":
            raise StoreError("Redis refuses the password or user: hunter2")
        if not away.is_set():
            raise StoreUnavailable("away")
        await hear(speaker, text, at)

    monkeypatch.setattr(live, "hear", sometimes)
    outgoing = Outgoing(live)
    outgoing.hear("Ida", "One.")
    outgoing.hear("Ida", "refused")
    outgoing.hear("Ida", "Two.")
    with capture_logs() as logs:
        await outgoing.close(0.2)
    assert not_said(logs) == [3]
    outgoing = Outgoing(live)
    for text in ("Three.", "refused", "Four."):
        outgoing.hear("Ida", text)
    with capture_logs() as logs:
        await asyncio.sleep(0)
        away.set()
        await outgoing.close()
    assert not_said(logs) == [1]
    assert "refused" not in str(logs)
    await wait_until(lambda: redis.llen("context_builder:monday:input"), "it is said")
    assert [one["text"] for one in await queued(redis)] == ["Three.", "Four."]


def not_said(logs: list[Any]) -> list[int]:
    """How many messages each entry of the log gives up."""
    return [entry["messages"] for entry in logs if entry["event"] == "integration.not_said"]
