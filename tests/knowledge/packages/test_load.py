"""Packages under load, and over a database that is slow at first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import pytest

from context_builder.knowledge import service as service_module
from context_builder.knowledge.artifact import Sensitivity
from context_builder.knowledge.request import ContextBuildRequest
from context_builder.knowledge.service import AT_ONCE
from context_builder.knowledge.services import VectorDocument, VectorMemory
from tests.knowledge.packages.conftest import ANN, TRACE, Lab
from tests.services.waiting import PATIENCE, wait_until

REQUEST = ContextBuildRequest(intent="Which clips are labelled?", token_budget=500)


class Slowed:
    """A vector memory that first awaits ``before``, which is given the number of the call; what the caller may not see,
    which is looked for beside it, is found at once.
    """

    def __init__(self, memory: VectorMemory, before: Callable[[int], Awaitable[None]]) -> None:
        self._memory = memory
        self._before = before
        self.calls = self.running = self.most = 0

    async def search(self, *asked: Any, sensitivities: Collection[str] = (), **more: Any) -> list[VectorDocument]:
        if sensitivities and Sensitivity.INTERNAL not in sensitivities:
            return list(await self._memory.search(*asked, sensitivities=sensitivities, **more))
        self.calls += 1
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self._before(self.calls)
            return list(await self._memory.search(*asked, sensitivities=sensitivities, **more))
        finally:
            self.running -= 1


async def test_packages_asked_for_at_once_wait_for_each_other(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "LONGEST_WAIT", PATIENCE)
    all_at_once = asyncio.Event()

    async def gather_up(_: int) -> None:
        if slowed.running == AT_ONCE:
            all_at_once.set()
        await all_at_once.wait()

    slowed = Slowed(lab.services.vectors, gather_up)
    service = lab.again(vectors=slowed)
    made = await asyncio.gather(*(service.build(ANN, REQUEST, TRACE) for _ in range(3 * AT_ONCE)))
    assert slowed.calls == len({one.context_package_id for one in made}) == 3 * AT_ONCE
    assert slowed.most == AT_ONCE


async def test_one_that_waits_too_long_for_others_is_made_beside_them(lab: Lab) -> None:
    released = asyncio.Event()

    async def hang(call: int) -> None:
        if call <= AT_ONCE:
            await released.wait()

    slowed = Slowed(lab.services.vectors, hang)
    service = lab.again(vectors=slowed)
    stuck = [asyncio.create_task(service.build(ANN, REQUEST, TRACE)) for _ in range(AT_ONCE)]
    try:
        await wait_until(lambda: slowed.running == AT_ONCE, "as many look for their sources as may")
        await asyncio.wait_for(service.build(ANN, REQUEST, TRACE), PATIENCE)
        assert not any(one.done() for one in stuck)
    finally:
        released.set()
        await asyncio.gather(*stuck)


async def test_vectors_that_were_slow_are_asked_again_once_they_are_quick(lab: Lab) -> None:
    async def cold(call: int) -> None:
        if call <= 5:
            await asyncio.Event().wait()

    await lab.put("artifact:clips", "The clips of August are labelled.")
    slowed = Slowed(lab.services.vectors, cold)
    service = lab.again(vectors=slowed, retrieval_time=0.3)
    missing = [(await service.build(ANN, REQUEST, TRACE)).coverage for _ in range(5)]
    assert {one.semantic for one in missing} == {"unavailable"}
    left_alone = await service.build(ANN, REQUEST, TRACE)
    assert left_alone.coverage.reasons == ("semantic: not asked for now: it failed too often",)
    await service.close()  # what looks for it beside the packages has ended
    again = await service.build(ANN, REQUEST, TRACE)
    assert (again.coverage.reasons, [one.ref for one in again.sources]) == (
        ("semantic: found by words alone",),
        ["artifact:clips"],
    )
