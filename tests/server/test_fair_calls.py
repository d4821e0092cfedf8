"""The model's calls are shared fairly between the tenants of callers."""

from __future__ import annotations

import asyncio

from context_builder.concurrency import FairTurns
from context_builder.server.access.caller import caller_of
from context_builder.server.asgi.callers import asked_by


async def test_a_tenant_with_many_calls_does_not_keep_another_from_its_turn() -> None:
    turns, answered = FairTurns(), []

    async def ask(tenant: str) -> None:
        with asked_by(caller_of(tenant, "ann", frozenset({"reader"}))):
            async with turns:
                answered.append(tenant)
                await asyncio.sleep(0)

    await asyncio.gather(*map(ask, ["lab"] * 5), ask("pier"))
    assert answered.index("pier") == 2
