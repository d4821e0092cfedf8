"""What is sent arrives as it was."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest

from context_builder.assembly.govern import Access
from context_builder.knowledge.artifact import Link
from context_builder.knowledge.governance import AccessDecision, Agent, DecisionContext, GovernedSource
from context_builder.knowledge.grpc import encoding
from context_builder.knowledge.grpc import knowledge_pb2 as pb
from context_builder.knowledge.node import KnowledgeNode
from context_builder.knowledge.request import Scope
from context_builder.knowledge.services import AccessReport, GraphProjection, VectorDocument

NODE = KnowledgeNode(
    ref="artifact:protocol",
    kind="document",
    title="Labelling · protocol",
    content="Clips\nare labelled.\0",
    version=3,
    sensitivity="confidential",
    status="approved",
    project="kelp",
    module="acoustics",
    session="monday",
    tags=("labels", "clips"),
    speaker="Ann",
    time=datetime(2026, 11, 22, 10, 30, 45, 123456, tzinfo=UTC),
    superseded_by="artifact:new",
    cites=("artifact:a", "artifact:b"),
    projections=("Clips are labelled.", "Clips"),
    quality=0.9,
    reuse=0.0,
)
BARE = KnowledgeNode("message:monday/7", "message", "", None)


def test_every_field_of_a_node_arrives() -> None:
    unset = [one.name for one in fields(NODE) if getattr(NODE, one.name) == getattr(BARE, one.name)]
    assert unset == [], "the sample does not tell whether these arrive"
    for node in (NODE, BARE, replace(NODE, content="")):
        assert encoding.node_of(encoding.node_message(node)) == node


def test_what_was_found_arrives() -> None:
    document = VectorDocument(NODE, 0.71, by_meaning=True, seed=0.3)
    assert encoding.document_of(encoding.document_message(document)) == document
    edge = Link("artifact:a", "artifact:b", "cites", 2.5)
    projection = GraphProjection((NODE, BARE), {"artifact:protocol": 1.0, "artifact:far": 0.01}, (edge,))
    assert encoding.projection_of(encoding.projection_message(projection)) == projection
    scope = Scope(project_id="kelp", module_id="acoustics", session_ids=("monday", "tuesday"))
    assert encoding.scope_of(encoding.scope_message(scope)) == scope


@pytest.mark.parametrize("ref", ["", "artifact:a b", "artifact:\0", "a" * 513])
def test_a_node_without_a_ref_that_may_be_one_is_refused(ref: str) -> None:
    with pytest.raises(ValueError, match="a ref is"):
        encoding.node_of(pb.Node(ref=ref))


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_what_is_no_number_is_refused(odd: float) -> None:
    node = encoding.node_message(BARE)
    for refused in (
        lambda: encoding.document_of(pb.VectorDocument(node=node, similarity=odd)),
        lambda: encoding.node_of(pb.Node(ref="artifact:a", quality=odd)),
        lambda: encoding.weights_of([pb.WeightedRef(ref="artifact:a", weight=odd)]),
        lambda: encoding.projection_of(pb.NeighbourhoodReply(edges=[pb.Edge(weight=odd)])),
    ):
        with pytest.raises(ValueError, match="is no number"):
            refused()


def test_questions_and_decisions_arrive() -> None:
    agent = Agent("lab", frozenset({"writer", "biologist"}), "ann")
    sources = [NODE.governed("lab"), GovernedSource("artifact:x", "club")]
    context = DecisionContext("labels?", datetime(2026, 11, 22, 10, tzinfo=UTC))
    asked = encoding.question_of(encoding.question_message(agent, sources, context))
    assert asked == (agent, sources, context)
    decisions = tuple(AccessDecision(f"ref:{access}", access, ("p1", "p2"), "why") for access in Access)
    report = AccessReport(decisions, "sha256:1", 7, depends_on_time=True)
    assert encoding.report_of(encoding.report_message(report)) == report


def test_an_access_that_is_not_known_is_a_denial() -> None:
    message = encoding.report_message(AccessReport((AccessDecision("a", Access.READ, (), ""),), "", 0, False))
    message.decisions[0].access = 7  # type: ignore[assignment]
    assert encoding.report_of(message).decisions[0].access is Access.DENIED


def test_an_empty_text_is_another_thing_than_one_that_could_not_be_redacted() -> None:
    texts = ["shown", "", None]
    assert encoding.redacted_of(encoding.redacted_message(texts)) == texts
