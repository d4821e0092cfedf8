"""A package holds what an agent may see of what fits its intent, within the budget, and says why."""

from __future__ import annotations

import pytest

from context_builder.errors import PackageUnknown, PinnedOverBudget
from context_builder.knowledge.artifact import Assessment, Edge, Sensitivity
from context_builder.tokens.counter import count_tokens
from tests.knowledge.packages.conftest import ADMIN, BOB, STRANGER, Lab

pytestmark = pytest.mark.engines

LONG = "\n\n".join(f"Section {number} tells of hydrophone clips. " + "It goes on and on. " * 40 for number in range(9))


async def test_what_is_alike_and_what_is_connected_come_together(lab: Lab) -> None:
    await lab.put("artifact:protocol", "Hydrophone clips are labelled by two people.")
    await lab.put("artifact:decision", "Whistles count as one event.")
    await lab.put("artifact:menu", "Soup on Mondays.")
    await lab.store.link("lab", [Edge(from_ref="artifact:protocol", to_ref="artifact:decision", type="decided_in")])
    package = await lab.build("how are hydrophone clips labelled?")
    by_ref = {one.ref: one for one in package.sources}
    assert list(by_ref) == ["artifact:protocol", "artifact:decision"]
    assert by_ref["artifact:protocol"].origins == ("semantic", "graph")
    assert by_ref["artifact:decision"].origins == ("graph",)
    assert by_ref["artifact:decision"].signals["graph"] > 0
    assert package.tokens_used == count_tokens(await lab.service.prompt(package)) <= package.token_budget
    assert (package.coverage.graph, package.coverage.metadata, package.coverage.cache) == ("ok", "ok", "ok")


async def test_pinned_sources_come_first_and_whole_or_summarised(lab: Lab) -> None:
    await lab.put("artifact:clips", "Hydrophone clips are labelled by two people.")
    await lab.put("artifact:long", LONG)
    package = await lab.build("hydrophone clips", budget=400, pinned=["artifact:long"])
    first = package.sources[0]
    assert (first.ref, first.projection, first.pinned) == ("artifact:long", "summarised", True)
    assert package.tokens_used <= 400
    with pytest.raises(PinnedOverBudget):
        await lab.build("hydrophone clips", budget=15, pinned=["artifact:long"])


async def test_confidential_sources_are_redacted_and_restricted_ones_are_an_admins(lab: Lab) -> None:
    await lab.put("artifact:open", "Clips go to the archive.")
    await lab.put("artifact:mail", "Clips go to ann@example.org.", sensitivity=Sensitivity.CONFIDENTIAL)
    await lab.put("artifact:pay", "Clips cost a salary.", sensitivity=Sensitivity.RESTRICTED)
    package = await lab.build("clips")
    shown = {one.ref: (one.projection, one.content) for one in package.sources}
    assert shown["artifact:mail"] == ("redacted", "Clips go to <EMAIL_ADDRESS>.")
    assert shown["artifact:open"] == ("full", "Clips go to the archive.")
    assert "artifact:pay" not in shown
    assert (package.denied, package.redacted) == (0, 1)
    assert "artifact:pay" in {one.ref for one in (await lab.build("clips", ADMIN)).sources}


async def test_a_pinned_source_that_is_denied_is_out_in_the_same_words_as_an_unknown_one(lab: Lab) -> None:
    await lab.put("artifact:pay", "Clips cost a salary.", sensitivity=Sensitivity.RESTRICTED)
    await lab.put("artifact:theirs", "Clips of the club.", tenant="club")
    package = await lab.build("clips", BOB, pinned=["artifact:pay", "artifact:nowhere", "artifact:theirs"])
    assert package.sources == ()
    assert [one for one in package.coverage.reasons if one.startswith("pinned")] == [
        "pinned artifact:pay: not available",
        "pinned artifact:nowhere: not available",
        "pinned artifact:theirs: not available",
    ]
    audit = await lab.service.audit(BOB, package.context_package_id, of_others=False)
    assert "artifact:pay" not in {one.ref for one in (*audit.policy_decision.sources, *audit.candidates)}
    audit = await lab.service.audit(ADMIN, package.context_package_id, of_others=True)
    assert [(one.ref, one.access) for one in audit.policy_decision.sources] == [("artifact:pay", "denied")]


@pytest.mark.parametrize(("threshold", "is_whole"), [(0.0, True), (0.5, False)])
async def test_passages_less_alike_than_the_threshold_are_left_out(lab: Lab, threshold: float, is_whole: bool) -> None:
    sections = [
        f"## {title}\n\n{f'{word} goes on. ' * 33}" for title, word in (("Tea", "Tea"), ("Clips", "Hydrophone"))
    ]
    await lab.put("artifact:manual", "\n\n".join(["# Manual", *sections]))
    package = await lab.build("hydrophone clips", retrieval={"semantic": {"threshold": threshold}, "graph": None})
    (shown,) = package.sources
    assert "Hydrophone goes on." in shown.content
    assert ("Tea goes on." in shown.content) is is_whole


async def test_nothing_found_is_an_empty_package(lab: Lab) -> None:
    package = await lab.build("anything at all")
    assert (package.sources, package.denied, package.tokens_used) == ((), 0, 0)
    assert package.policy_version.startswith("sha256:")
    assert await lab.service.prompt(package) == ""


async def test_a_source_that_is_switched_off_is_not_asked(lab: Lab) -> None:
    await lab.put("artifact:clips", "Hydrophone clips.", project_id="kelp")
    package = await lab.build("clips", retrieval={"semantic": None, "graph": None}, scope={"projectId": "kelp"})
    assert (package.coverage.semantic, package.coverage.graph, package.coverage.metadata) == ("off", "off", "ok")
    assert [one.origins for one in package.sources] == [("metadata",)]
    assert not package.coverage.reduced


async def test_with_every_source_off_or_a_blank_intent_there_is_what_is_pinned(lab: Lab) -> None:
    await lab.put("artifact:clips", "Hydrophone clips.")
    off = {"semantic": None, "graph": None, "metadata": None}
    for asked in ({"retrieval": off}, {"intent": " "}):
        package = await lab.build(**{"intent": "clips", "pinned": ["artifact:clips"], **asked})
        assert [one.ref for one in package.sources] == ["artifact:clips"]
        assert not package.coverage.reasons
    assert not (await lab.build("clips", retrieval=off)).coverage.reasons


async def test_what_is_superseded_ranks_lower_and_says_so(lab: Lab) -> None:
    await lab.put("artifact:old", "Clips are labelled by one person.")
    await lab.put("artifact:new", "Clips are labelled by two persons.", supersedes="artifact:old")
    package = await lab.build("how are clips labelled")
    assert [one.ref for one in package.sources] == ["artifact:new", "artifact:old"]
    assert package.sources[1].superseded_by == "artifact:new"
    assert "superseded by artifact:new" in await lab.service.prompt(package)


async def test_a_package_belongs_to_its_tenant(lab: Lab) -> None:
    await lab.put("artifact:clips", "Hydrophone clips.")
    package = await lab.build("clips")
    with pytest.raises(PackageUnknown):
        await lab.service.get(STRANGER, package.context_package_id)
    assert (await lab.build("clips", STRANGER)).sources == ()


async def test_quality_and_feedback_reach_the_ranking(lab: Lab) -> None:
    await lab.put("artifact:a", "Clips are labelled by hand.")
    await lab.put("artifact:b", "Clips are labelled by hand!")
    await lab.store.assess("lab", [Assessment(ref="artifact:b", quality=0.9, assessor="ann")])
    await lab.store.assess("lab", [Assessment(ref="artifact:a", quality=0.1, assessor="ann")])
    package = await lab.build("how are clips labelled")
    assert [(one.ref, one.signals["quality"]) for one in package.sources] == [("artifact:b", 0.9), ("artifact:a", 0.1)]
    await lab.service.feedback(BOB, package.context_package_id, 1.0, {"artifact:a": 1.0}, "")
    after = {one.ref: one for one in (await lab.build("how are clips labelled")).sources}
    before = {one.ref: one for one in package.sources}
    assert 0 < after["artifact:a"].score - before["artifact:a"].score <= 0.05
    assert after["artifact:a"].signals["reuse"] > 0


async def test_nobody_rates_what_they_may_not_see(lab: Lab) -> None:
    await lab.put("artifact:open", "Clips are labelled by hand.")
    await lab.put("artifact:closed", "Clips are labelled by hand!", sensitivity=Sensitivity.RESTRICTED)
    package = await lab.build("how are clips labelled", ADMIN)
    assert {one.ref for one in package.sources} == {"artifact:open", "artifact:closed"}
    helped = {"artifact:open": 1.0, "artifact:closed": 0.0, "artifact:none": 1.0}
    unknown = await lab.service.feedback(BOB, package.context_package_id, 1.0, helped, "")
    assert unknown == ["artifact:closed", "artifact:none"]
    after = {one.ref: one.signals for one in (await lab.build("how are clips labelled", ADMIN)).sources}
    assert after["artifact:open"]["reuse"] > 0
    assert after["artifact:closed"]["quality"] == package.sources[0].signals["quality"]


async def test_what_is_too_long_and_one_word_is_within_the_budget_too(lab: Lab) -> None:
    await lab.put("artifact:clips", "Hydrophone clips.")
    await lab.put("artifact:blob", "clips " + "x" * 50_000, title="clips")
    await lab.put("artifact:word", "x" * 50_000, title="clips")
    package = await lab.build("clips", budget=100)
    assert "artifact:clips" in {one.ref for one in package.sources}
    assert package.tokens_used <= 100
    with pytest.raises(PinnedOverBudget):
        await lab.build("clips", budget=100, pinned=["artifact:word"])
