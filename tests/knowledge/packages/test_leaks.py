"""What an agent must not see, it does not learn: not by a race, an older version, an audit, or a name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest

from context_builder.knowledge.artifact import Sensitivity
from context_builder.knowledge.governance import Agent, DecisionContext, GovernedSource
from context_builder.knowledge.policies import PolicyStore
from context_builder.knowledge.request import ContextBuildRequest, Scope
from context_builder.knowledge.services import AccessReport, MemoryPolicy
from context_builder.knowledge.view import rendered_package
from context_builder.memory.memory import Memory, MemoryFilter
from context_builder.session.keys import PACKAGE as PREFIX
from context_builder.session.keys import PACKAGE_SIGNATURE
from context_builder.session.store.registry import SessionRegistry
from tests.knowledge.packages.conftest import ADMIN, ANN, BOB, TRACE, Lab
from tests.redaction.tokens import token

pytestmark = pytest.mark.engines

SOURCES = ("graph", "semantic", "metadata")
REQUEST = ContextBuildRequest(intent="hydrophone clips", token_budget=1_000)


class Interrupted:
    """Decides, but before the first decision about sources something happens."""

    def __init__(self, policy: MemoryPolicy, happens: Callable[[], Awaitable[object]]) -> None:
        self._policy = policy
        self._happens: Callable[[], Awaitable[object]] | None = happens

    async def decide(self, agent: Agent, sources: Sequence[GovernedSource], context: DecisionContext) -> AccessReport:
        if any(one.kind for one in sources) and self._happens is not None:  # sensitivities are asked about without one
            happens, self._happens = self._happens, None
            await happens()
        return await self._policy.decide(agent, sources, context)


async def test_what_is_restricted_while_it_is_being_packed_is_not_served(lab: Lab) -> None:
    await lab.put("artifact:clips", "hydrophone SECRET clips")

    async def restrict() -> None:
        await lab.put("artifact:clips", "hydrophone SECRET clips", sensitivity=Sensitivity.RESTRICTED)

    service = lab.again(policy=Interrupted(lab.services.policy, restrict))
    package = await service.build(ANN, REQUEST, TRACE)
    served = await service.get(ANN, package.context_package_id)
    assert "SECRET" not in served.package.model_dump_json()


async def test_policies_that_change_while_a_package_is_made_decide_what_is_in_it(lab: Lab) -> None:
    await lab.put("artifact:clips", "hydrophone SECRET clips")

    async def forbid() -> None:
        await lab.policies.put("lab", "none", "forbid (principal, action, resource);")

    package = await lab.again(policy=Interrupted(lab.services.policy, forbid)).build(ANN, REQUEST, TRACE)
    assert package.sources == ()


async def test_the_version_of_governance_is_asked_for_at_first_for_the_last_decision_and_once_it_is_cached(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lab.put("artifact:clips", "hydrophone clips", project_id="kelp")
    request = REQUEST.model_copy(update={"scope": Scope(project_id="kelp"), "pinned": ("artifact:clips",)})
    await lab.service.build(ANN, request, TRACE)  # reads the policies
    await lab.service.close()
    asked = []
    ask = PolicyStore.version

    async def version(self: PolicyStore, tenant_id: str) -> int:
        asked.append(tenant_id)
        return await ask(self, tenant_id)

    monkeypatch.setattr(PolicyStore, "version", version)
    package = await lab.service.build(ANN, request, TRACE)
    await lab.service.close()
    assert [one.ref for one in package.sources] == ["artifact:clips"]
    assert len(asked) == 3


async def test_what_is_erased_while_it_is_being_packed_is_not_served(lab: Lab) -> None:
    await lab.put("artifact:clips", "hydrophone SECRET clips")
    service = lab.again(policy=Interrupted(lab.services.policy, lambda: lab.store.erase("lab", "artifact:clips")))
    package = await service.build(ANN, REQUEST, TRACE)
    served = await service.get(ANN, package.context_package_id)
    assert "SECRET" not in served.package.model_dump_json()


async def test_what_is_erased_leaves_the_cache(lab: Lab) -> None:
    await lab.put("artifact:clips", "hydrophone SECRET clips")
    kept = await lab.build("nothing of that", retrieval={"semantic": None, "graph": None, "metadata": None})
    package = await lab.build("hydrophone clips")
    await lab.store.erase("lab", "artifact:clips")
    await lab.service.erasure.uncache("lab", "artifact:clips")
    assert await lab.redis.get(PREFIX + package.context_package_id) is None
    assert await lab.redis.get(PREFIX + kept.context_package_id) is not None
    assert "SECRET" not in (await lab.service.get(ANN, package.context_package_id)).package.model_dump_json()


async def test_what_is_erased_while_it_is_being_packed_leaves_the_cache_however_much_is_under_way(lab: Lab) -> None:
    await lab.put("artifact:clips", "hydrophone SECRET clips")
    service = lab.again(policy=Interrupted(lab.services.policy, lambda: lab.store.erase("lab", "artifact:clips")))
    held = asyncio.Event()
    while service._background.start("busy", _waiting(held)):
        pass
    package = await service.build(ANN, REQUEST, TRACE)
    held.set()
    assert await lab.redis.get(PREFIX + package.context_package_id) is None


async def _waiting(for_what: asyncio.Event) -> None:
    await for_what.wait()


async def test_what_no_package_holds_is_not_served_from_the_cache(lab: Lab) -> None:
    await lab.put("artifact:clips", "hydrophone clips")
    package = await lab.build("hydrophone clips")
    forged = package.model_dump_json(by_alias=True).replace("artifact:clips", "artifact:clips\\u0000")
    await lab.redis.set(PREFIX + package.context_package_id, forged)
    assert (await lab.service.get(BOB, package.context_package_id)).cache == "rebuilt"


async def test_a_replacement_that_may_not_be_seen_is_not_named(lab: Lab) -> None:
    await lab.put("artifact:old", "hydrophone clips")
    await lab.put("artifact:merger", "plan", sensitivity=Sensitivity.RESTRICTED, supersedes="artifact:old")
    package = await lab.build("hydrophone clips", agent=BOB)
    assert [one.ref for one in package.sources] == ["artifact:old"]
    assert "superseded" in package.sources[0].heading
    assert "merger" not in package.model_dump_json() + rendered_package(package)
    whole = await lab.build("hydrophone clips", agent=ADMIN, pinned=["artifact:merger"])
    assert "superseded by artifact:merger" in rendered_package(whole)
    shown = (await lab.service.get(BOB, whole.context_package_id)).package
    assert "merger" not in shown.model_dump_json() + rendered_package(shown)


async def test_an_older_version_is_as_restricted_as_the_newer_one_or_itself(lab: Lab) -> None:
    await lab.put("artifact:clips", "hydrophone SECRET clips", sensitivity=Sensitivity.RESTRICTED)
    package = await lab.build("hydrophone clips", agent=ADMIN)
    assert "SECRET" in package.model_dump_json()
    await lab.put("artifact:clips", "hydrophone harmless clips", sensitivity=Sensitivity.PUBLIC)
    shown = (await lab.service.get(BOB, package.context_package_id)).package
    assert "SECRET" not in shown.model_dump_json()
    assert shown.denied == 0


async def test_an_audit_shows_what_its_reader_may_see_by_now(lab: Lab) -> None:
    await lab.put("artifact:clips", "hydrophone SECRET clips")
    await lab.put("artifact:open", "hydrophone open clips")
    package = await lab.build("hydrophone clips", agent=BOB)
    await lab.put("artifact:clips", "hydrophone SECRET clips", sensitivity=Sensitivity.RESTRICTED)
    audit = await lab.service.audit(BOB, package.context_package_id, of_others=False)
    assert "SECRET" not in audit.model_dump_json()
    assert "hydrophone open clips" in audit.model_dump_json()
    assert "SECRET" in (await lab.service.audit(ADMIN, package.context_package_id, of_others=True)).model_dump_json()


async def test_an_audit_shows_no_more_to_one_who_lost_a_role(lab: Lab) -> None:
    await lab.put("artifact:clips", "hydrophone SECRET clips", sensitivity=Sensitivity.RESTRICTED)
    package = await lab.build("hydrophone clips", agent=Agent("lab", frozenset({"admin"}), "zed"))
    less = Agent("lab", frozenset({"reader"}), "zed")
    audit = await lab.service.audit(less, package.context_package_id, of_others=False)
    assert "SECRET" not in audit.model_dump_json()


async def test_title_and_content_of_what_is_confidential_are_redacted_in_package_and_audit(lab: Lab) -> None:
    mail = "bob.smith@example.org"
    fields = {"title": f"Mail {mail}", "sensitivity": Sensitivity.CONFIDENTIAL}
    await lab.put("artifact:mail", f"hydrophone clips by {mail}", **fields)
    package = await lab.build("hydrophone clips")
    assert len(package.sources) == 1
    audit = await lab.service.audit(ANN, package.context_package_id, of_others=False)
    assert mail not in package.model_dump_json() + audit.model_dump_json()


async def test_who_may_not_see_a_source_learns_of_no_package_that_has_it(lab: Lab) -> None:
    await lab.put("artifact:clips", "hydrophone clips", sensitivity=Sensitivity.RESTRICTED)
    await lab.build("hydrophone clips", agent=ADMIN)
    assert len(await lab.service.listing(ADMIN, "ref", "artifact:clips", 10, None)) == 1
    assert await lab.service.listing(BOB, "ref", "artifact:clips", 10, None) == []


async def test_another_package_under_an_id_in_the_cache_is_not_served(lab: Lab) -> None:
    await lab.put("artifact:clips", "hydrophone clips")
    package, other = await lab.build("hydrophone clips"), await lab.build("hydrophone others")
    raw = await lab.redis.get(PREFIX + other.context_package_id)
    await lab.redis.set(PREFIX + package.context_package_id, raw)
    served = await lab.service.get(ANN, package.context_package_id)
    assert (served.cache, served.package.context_package_id) == ("rebuilt", package.context_package_id)


async def test_a_negative_budget_in_the_cache_ends_nothing(lab: Lab) -> None:
    await lab.put("artifact:clips", "hydrophone clips")
    package = await lab.build("hydrophone clips")
    key = PREFIX + package.context_package_id
    changed = json.dumps({**json.loads(await lab.redis.get(key)), "tokenBudget": -1})
    await lab.redis.set(key, changed)
    signature = await lab.secret.signature(package.context_package_id, changed)
    await lab.redis.set(PACKAGE_SIGNATURE + package.context_package_id, signature)
    assert (await lab.service.get(BOB, package.context_package_id)).package.sources == ()


async def test_a_cancelled_build_leaves_nothing_running(lab: Lab) -> None:
    await lab.put("artifact:clips", "hydrophone clips")
    reached = asyncio.Event()

    async def hang() -> None:
        reached.set()
        await asyncio.Event().wait()

    service = lab.again(policy=Interrupted(lab.services.policy, hang))
    before = asyncio.all_tasks()
    building = asyncio.create_task(service.build(ANN, REQUEST, TRACE))
    await reached.wait()
    building.cancel()
    with pytest.raises(asyncio.CancelledError):
        await building
    await service.close()
    assert not asyncio.all_tasks() - before


async def test_a_project_finds_its_own_among_many_others_that_are_more_alike(lab: Lab) -> None:
    for n in range(120):
        await lab.put(f"artifact:other/{n}", "Labelled hydrophone clips, clips of hydrophone.", project_id=f"other-{n}")
    await lab.put("artifact:own", "The kelp survey keeps hydrophone recordings in boxes.", project_id="kelp")
    await lab.put("artifact:all", "Everybody's hydrophone.")
    asked = {"scope": {"projectId": "kelp"}, "retrieval": {"graph": None, "metadata": None, "semantic": {"topK": 5}}}
    package = await lab.build("labelled hydrophone clips", **asked)
    assert {one.ref for one in package.sources} == {"artifact:own"}


async def test_what_is_forgotten_while_it_is_being_packed_is_not_served(lab: Lab) -> None:
    said = Memory("monday:message:1", "SECRET hydrophone clips.", session_id="monday", position=1)
    await lab.memory.remember("lab", [said])

    async def forget() -> None:
        await lab.memory.forget("lab", filter=MemoryFilter(session_id="monday"))
        await SessionRegistry(lab.redis).forget("monday")

    service = lab.again(policy=Interrupted(lab.services.policy, forget))
    package = await service.build(ANN, REQUEST, TRACE)
    for _ in range(2):
        served = await service.get(ANN, package.context_package_id)
        assert "SECRET" not in served.package.model_dump_json()
        await lab.redis.delete(PREFIX + package.context_package_id)


async def test_a_forgotten_session_leaves_no_package_in_the_cache(lab: Lab) -> None:
    for session in ("monday", "tuesday"):
        said = Memory(f"{session}:message:1", f"SECRET hydrophone clips of {session}.", session_id=session, position=1)
        await lab.memory.remember("lab", [said])
    both, other = await lab.build("hydrophone clips"), await lab.build("tuesday", pinned=["message:tuesday/1"])
    assert {one.ref for one in both.sources} == {"message:monday/1", "message:tuesday/1"}
    alone = await lab.build("tuesday", pinned=["message:tuesday/1"], retrieval=dict.fromkeys(SOURCES))
    await lab.memory.forget("lab", filter=MemoryFilter(session_id="monday"))
    await SessionRegistry(lab.redis).forget("monday")
    assert await lab.redis.get(PREFIX + both.context_package_id) is None
    assert await lab.redis.get(PREFIX + alone.context_package_id) is not None
    assert not [key async for key in lab.redis.scan_iter("*monday*")]
    for package in (both, other):
        shown = (await lab.service.get(ANN, package.context_package_id)).package
        assert "SECRET hydrophone clips of monday" not in shown.model_dump_json()


async def test_what_is_corrected_or_struck_is_in_no_package_that_another_redis_keeps(lab: Lab) -> None:
    said = Memory("monday:message:1", "SECRET hydrophone clips.", session_id="monday", position=1)
    await lab.memory.remember("lab", [said])
    package = await lab.build("hydrophone clips")
    assert await lab.service.get(ANN, package.context_package_id) == (package, "hit")
    await lab.memory.remember("lab", [replace(said, text="Corrected hydrophone clips.")])
    shown, cache = await lab.service.get(ANN, package.context_package_id)
    assert ([one.content for one in shown.sources], cache) == (["Corrected hydrophone clips."], "rebuilt")
    await lab.memory.forget("lab", filter=MemoryFilter(session_id="monday"))
    shown, cache = await lab.service.get(ANN, package.context_package_id)
    assert ([one.content for one in shown.sources], cache) == ([], "rebuilt")


async def test_a_gap_names_no_heading_as_it_was_before_redaction(lab: Lab) -> None:
    secret = token("ghp_", 36)
    filler, wanted = "Waves break. " * 55, "Hydrophone clips are labelled by two people. " * 12
    # The laboratory's store redacts nothing, as one did whose redactor knew less.
    await lab.put("artifact:keys", f"# Key {secret}\n\n{filler}\n\n{wanted}", sensitivity=Sensitivity.CONFIDENTIAL)
    asked = {"graph": None, "metadata": None}
    built = [
        await lab.build("hydrophone clips labelled", budget=budget, retrieval=asked) for budget in range(120, 180, 4)
    ]
    assert any("[… Key" in source.content for package in built for source in package.sources)
    assert not [package.token_budget for package in built if secret in package.model_dump_json()]
