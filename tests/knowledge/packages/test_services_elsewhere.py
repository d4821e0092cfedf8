"""A package is built without a service that is away, within its deadline, and says so; without policy it is empty."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from context_builder.assembly.govern import RedactionPolicy
from context_builder.errors import DatabaseUnavailable
from context_builder.knowledge.artifact import Sensitivity
from context_builder.knowledge.grpc import clients
from context_builder.knowledge.grpc.channel import ServiceChannel
from context_builder.knowledge.local import LocalNodes
from context_builder.knowledge.node import KnowledgeNode
from context_builder.knowledge.package import ContextPackage
from context_builder.knowledge.request import ContextBuildRequest, Retrieval
from context_builder.knowledge.service import PackageService
from context_builder.knowledge.store import KnowledgeStore
from context_builder.session.keys import PACKAGE
from context_builder.wiring.knowledge import redactor_of_packages
from tests.knowledge.packages.conftest import ANN, TRACE, Lab
from tests.services.stalling_services import StallingServices, stalling_services

pytestmark = pytest.mark.engines

PATIENCE = 5.0
"""Seconds that a call may take, which none of these builds does."""

REQUEST = ContextBuildRequest.model_validate(
    {"intent": "hydrophone clips", "tokenBudget": 2_000, "scope": {"projectId": "kelp"}, "pinned": ["artifact:pin"]}
)


ELSEWHERE: dict[str, Callable[[ServiceChannel], dict[str, Any]]] = {
    "graph": lambda channel: {"graph": clients.RemoteGraph(channel)},
    "semantic": lambda channel: {"vectors": clients.RemoteVectors(channel)},
    "metadata": lambda channel: {"index": clients.RemoteIndex(channel)},
    "policy": lambda channel: {"policy": clients.RemotePolicy(channel)},
    "redaction": lambda channel: {"redaction": clients.RemoteRedaction(channel)},
}


@pytest.fixture
async def stalling() -> AsyncIterator[StallingServices]:
    async with stalling_services() as server:
        yield server


@pytest.fixture
async def filled(lab: Lab) -> Lab:
    await lab.put("artifact:clips", "Hydrophone clips are labelled.", project_id="kelp")
    await lab.put("artifact:pin", "The archive keeps them.")
    mail = {"project_id": "kelp", "sensitivity": Sensitivity.CONFIDENTIAL}
    await lab.put("artifact:mail", "Clips go to ann@example.org.", **mail)
    return lab


async def build(service: PackageService) -> ContextPackage:
    return await service.build(ANN, REQUEST, TRACE)


@pytest.mark.parametrize("away", ELSEWHERE)
async def test_a_service_that_is_killed_while_it_is_asked(filled: Lab, stalling: StallingServices, away: str) -> None:
    channel = ServiceChannel(stalling.url, "any", PATIENCE)
    building = asyncio.create_task(build(filled.again(**ELSEWHERE[away](channel))))
    await stalling.asked()
    await stalling.kill()
    killed = time.monotonic()
    package = await building
    assert time.monotonic() - killed < PATIENCE
    await channel.close()
    shown = {one.ref for one in package.sources}
    coverage = package.coverage
    states = {"graph": coverage.graph, "semantic": coverage.semantic, "metadata": coverage.metadata}
    lost = "does not answer"
    assert coverage.reduced
    assert {name for name, state in states.items() if state == "unavailable"} == {away} & set(states)
    if away == "policy":
        assert (shown, package.denied) == (set(), 0)
        assert f"policy: {lost}; all is denied" in coverage.reasons
    elif away == "redaction":
        assert shown == {"artifact:clips", "artifact:pin"}
        assert f"redaction: {lost}; what is to be redacted is withheld" in coverage.reasons
    else:
        assert f"{away}: {lost}" in coverage.reasons
        assert ("artifact:clips" in shown) == (away != "semantic")  # nothing else tells that it fits the intent
        without_pins = away == "metadata"
        assert (f"pinned: {lost}" in coverage.reasons) == without_pins
        assert ("pinned artifact:pin: not available" in coverage.reasons) == (
            without_pins and "artifact:pin" not in shown
        )
        assert bool(await filled.redis.exists(PACKAGE + package.context_package_id)) != without_pins


async def test_a_service_that_does_not_answer_is_waited_for_as_long_as_its_deadline(
    filled: Lab, stalling: StallingServices
) -> None:
    channel = ServiceChannel(stalling.url, "any", 0.15)
    told = {}
    for away, elsewhere in ELSEWHERE.items():
        package = await build(filled.again(**elsewhere(channel)))
        told[away] = [one.partition(";")[0] for one in package.coverage.reasons if one.startswith(f"{away}: ")]
    await channel.close()
    assert told == {away: [f"{away}: timed out after 0.15 s"] for away in ELSEWHERE}


class Slow(LocalNodes):
    """Finds what is pinned after some seconds; ``asked`` counts how often."""

    def __init__(self, store: KnowledgeStore, seconds: float) -> None:
        super().__init__(store)
        self._seconds = seconds
        self.asked = 0

    async def nodes(self, tenant_id: str, refs: Sequence[str], longest: int) -> dict[str, KnowledgeNode]:
        if tuple(refs) == REQUEST.pinned:
            self.asked += 1
            await asyncio.sleep(self._seconds)
        return await super().nodes(tenant_id, refs, longest)


async def test_a_slow_machine_waits_for_what_is_pinned_and_for_nothing_else(filled: Lab) -> None:
    class SlowToFind(Slow):
        async def find(self, *asked: Any) -> list[KnowledgeNode]:
            await asyncio.sleep(self._seconds)
            return await super().find(*asked)

    package = await build(filled.again(retrieval_time=0.15, index=SlowToFind(filled.store, 0.4)))
    assert [one.ref for one in package.sources if one.pinned] == ["artifact:pin"]
    assert package.coverage.metadata == "unavailable"
    assert "metadata: timed out after 0.15 s" in package.coverage.reasons
    assert not [one for one in package.coverage.reasons if "pinned" in one]


async def test_pins_are_looked_for_however_often_that_failed_and_a_package_without_is_not_kept(filled: Lab) -> None:
    index = Slow(filled.store, 5.0)
    service = filled.again(pinned_time=0.02, index=index)
    alone = REQUEST.model_copy(update={"retrieval": Retrieval(graph=None, semantic=None, metadata=None)})
    packages = [await service.build(ANN, alone, TRACE) for _ in range(7)]
    assert index.asked == 7
    for package in packages:
        assert {"pinned: timed out after 0.02 s", "pinned artifact:pin: not available"} <= {*package.coverage.reasons}
        assert package.coverage.reduced
        assert not await filled.redis.exists(PACKAGE + package.context_package_id)
    again, cache = await filled.service.get(ANN, packages[0].context_package_id)
    assert ([one.ref for one in again.sources if one.pinned], cache) == (["artifact:pin"], "rebuilt")


async def test_when_all_sources_are_left_alone_a_package_says_so(filled: Lab, stalling: StallingServices) -> None:
    channel = ServiceChannel(stalling.url, "any", PATIENCE)
    await stalling.kill()
    remote = {name: part for away in ("semantic", "metadata") for name, part in ELSEWHERE[away](channel).items()}
    service = filled.again(**remote)
    request = REQUEST.model_copy(update={"pinned": (), "retrieval": Retrieval(graph=None)})
    for _ in range(6):
        coverage = (await service.build(ANN, request, TRACE)).coverage
    await channel.close()
    assert (coverage.graph, coverage.semantic, coverage.metadata) == ("off", "unavailable", "unavailable")
    assert coverage.reduced


async def test_without_decisions_nobody_is_served_what_was_built_before(
    filled: Lab, stalling: StallingServices
) -> None:
    package = await build(filled.service)
    await stalling.kill()
    channel = ServiceChannel(stalling.url, "any", PATIENCE)
    with pytest.raises(DatabaseUnavailable):
        await filled.again(policy=clients.RemotePolicy(channel)).get(ANN, package.context_package_id)
    await channel.close()


async def test_what_another_service_redacts_is_as_if_it_were_redacted_here(filled: Lab) -> None:
    asked: list[int] = []

    policy = RedactionPolicy(redactor_of_packages())

    class Counting:
        async def redact(self, texts: Sequence[str]) -> list[str | None]:
            asked.append(len(texts))
            return [policy.text(text).text for text in texts]

    elsewhere = filled.again(redaction=Counting())
    here, there = await build(filled.service), await build(elsewhere)
    assert [(one.ref, one.projection, one.content) for one in here.sources] == [
        (one.ref, one.projection, one.content) for one in there.sources
    ]
    assert there.redacted == 1
    assert len(asked) == 1  # one call, of every text
    await filled.policies.put("lab", "default", 'permit(principal, action == Action::"readRedacted", resource);')
    await filled.put("artifact:clips", "Hydrophone clips are labelled.", project_id="kelp", status="draft")
    views = [(await service.get(ANN, here.context_package_id)).package for service in (filled.service, elsewhere)]
    assert views[0].sources == views[1].sources
    assert {one.projection for one in views[1].sources} == {"redacted"}
