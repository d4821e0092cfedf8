"""A model makes the shorter texts that stand for an artifact, once for each version, of what it may be shown."""

from __future__ import annotations

import pytest

from context_builder.analysis.analyst import DocumentRequest, DocumentResult
from context_builder.errors import AnalystUnavailable
from context_builder.knowledge.artifact import Sensitivity
from context_builder.knowledge.model_projections import ModelProjections, projections_of
from context_builder.testing import StubAnalyst
from tests.knowledge.packages.conftest import Lab

pytestmark = pytest.mark.engines

SENTENCE = "is about hydrophone clips and how they are labelled by people. " * 3
LONG = "\n\n".join(f"Paragraph {n} {SENTENCE}" for n in range(30))


class Brief(StubAnalyst):
    """Makes of each passage the statement ``Clips, in brief.``, in 20 words."""

    async def _project_document(self, request: DocumentRequest) -> DocumentResult:
        result = await super()._project_document(request)
        return DocumentResult(tuple("Clips, in brief. " + "word " * 17 for _ in result.statements), self.name)


class Silent(StubAnalyst):
    """Makes no statement."""

    async def _project_document(self, request: DocumentRequest) -> DocumentResult:
        await super()._project_document(request)
        return DocumentResult((), self.name)


async def test_a_models_projection_stands_for_what_is_pinned_too_long_and_not_like_the_intent(lab: Lab) -> None:
    await lab.put("artifact:long", LONG)
    analyst = Brief("small")
    projections = ModelProjections(lab.store, analyst)
    assert await projections.make_missing("lab") == 1
    package = await lab.build("something else entirely", budget=150, pinned=["artifact:long"])
    (source,) = package.sources
    assert source.projection == "summarised"
    assert source.content.startswith("Clips, in brief.")
    calls = len(analyst.document_calls)
    assert await projections.make_missing("lab") == 0
    await lab.put("artifact:long", LONG, title="Another title")
    assert await projections.make_missing("lab") == 0
    assert len(analyst.document_calls) == calls  # once for each version
    await lab.put("artifact:long", LONG + "\n\nMore.")
    assert await projections.make_missing("lab") == 1


async def test_a_model_is_not_shown_what_is_confidential_or_restricted_nor_another_tenants(lab: Lab) -> None:
    await lab.put("artifact:mail", LONG, sensitivity=Sensitivity.CONFIDENTIAL)
    await lab.put("artifact:pay", LONG, sensitivity=Sensitivity.RESTRICTED)
    await lab.put("artifact:club", LONG, tenant="club")
    await lab.put("artifact:short", "Too short to be made shorter.")
    analyst = Brief()
    assert await ModelProjections(lab.store, analyst).make_missing("lab") == 0
    assert analyst.document_calls == []


async def test_extracts_stay_while_the_model_fails_or_has_little_to_say(lab: Lab) -> None:
    await lab.put("artifact:long", LONG)
    analyst = Brief()
    analyst.failure = AnalystUnavailable("away")
    with pytest.raises(AnalystUnavailable):
        await ModelProjections(lab.store, analyst).make_missing("lab")
    (source,) = (await lab.build("something else entirely", budget=150, pinned=["artifact:long"])).sources
    assert source.content.startswith("Paragraph 0")
    analyst.failure = None
    assert await ModelProjections(lab.store, analyst).make_missing("lab") == 1


async def test_a_version_that_was_replaced_or_erased_meanwhile_gets_none(lab: Lab) -> None:
    await lab.put("artifact:long", LONG)
    assert not await lab.store.project("lab", "artifact:long", 2, "small", {16: "Of no version."})
    await lab.put("artifact:long", LONG, sensitivity=Sensitivity.RESTRICTED)
    assert not await lab.store.project("lab", "artifact:long", 1, "small", {16: "Of what became restricted."})
    await lab.store.erase("lab", "artifact:long")
    assert not await lab.store.project("lab", "artifact:long", 1, "small", {16: "Of nothing."})


async def test_a_model_with_nothing_to_say_is_not_asked_again(lab: Lab) -> None:
    await lab.put("artifact:long", LONG)
    analyst = Silent()
    projections = ModelProjections(lab.store, analyst)
    assert await projections.make_missing("lab") == 0
    calls = len(analyst.document_calls)
    assert calls
    assert await projections.make_missing("lab") == 0
    assert len(analyst.document_calls) == calls
    (source,) = (await lab.build("something else entirely", budget=150, pinned=["artifact:long"])).sources
    assert source.content.startswith("Paragraph 0")


def test_statements_fill_the_sizes_that_they_can() -> None:
    points = ["one two three four five six", *(f"{n} " * 10 for n in range(4))]
    made = projections_of(points, 1_000)
    assert {size: len(text.split()) for size, text in made.items()} == {40: 36, 16: 16}
    assert projections_of(points, 30) == {16: made[16]}
    assert projections_of([], 1_000) == {}
