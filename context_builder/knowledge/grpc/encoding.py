"""This module converts between messages of ``knowledge.proto`` and the values that they stand for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC
from typing import Any, Final

from context_builder.assembly.govern import Access
from context_builder.clock import in_utc
from context_builder.knowledge.artifact import Link, check_ref
from context_builder.knowledge.excerpt import Part
from context_builder.knowledge.governance import AccessDecision, Agent, DecisionContext, GovernedSource
from context_builder.knowledge.grpc import knowledge_pb2 as pb
from context_builder.knowledge.node import KnowledgeNode
from context_builder.knowledge.passages import Passage
from context_builder.knowledge.request import LONGEST_INTENT, Scope, SemanticRetrieval
from context_builder.knowledge.services import AccessReport, GraphProjection, VectorDocument

_PLAIN: Final = ("ref", "kind", "title", "version", "sensitivity", "status", "project", "module", "session")
_OPTIONAL: Final = ("content", "speaker", "superseded_by", "quality", "reuse")
_LISTS: Final = ("tags", "cites", "projections")
_SOURCE: Final = ("ref", "tenant", "kind", "sensitivity", "status", "project", "module", "session")
_TO_MESSAGE: Final = {
    Access.DENIED: pb.ACCESS_DENIED,
    Access.REDACTED: pb.ACCESS_REDACTED,
    Access.READ: pb.ACCESS_READ,
}
_OF_MESSAGE: Final[Mapping[int, Access]] = {number: access for access, number in _TO_MESSAGE.items()}


def node_message(node: KnowledgeNode) -> pb.Node:
    """Return the node as a message."""
    message = pb.Node(**{name: getattr(node, name) for name in (*_PLAIN, *_OPTIONAL, *_LISTS)})
    if node.time is not None:
        message.time.FromDatetime(node.time)
    return message


def node_of(message: pb.Node) -> KnowledgeNode:
    """Return the node in a message. Raises :class:`ValueError` for what no node has."""
    check_ref(message.ref)
    fields: dict[str, Any] = {name: getattr(message, name) for name in _PLAIN}
    fields |= {name: getattr(message, name) for name in _OPTIONAL if message.HasField(name)}
    fields |= {name: tuple(getattr(message, name)) for name in _LISTS}
    for name in ("quality", "reuse"):
        _finite(fields.get(name, 0.0))
    time = message.time.ToDatetime(UTC) if message.HasField("time") else None
    return KnowledgeNode(**{"content": None, **fields, "time": time})


def scope_message(scope: Scope) -> pb.Scope:
    """Return the scope as a message."""
    return pb.Scope(project_id=scope.project_id, module_id=scope.module_id, session_ids=scope.session_ids)


def scope_of(message: pb.Scope) -> Scope:
    """Return the scope in a message. Raises :class:`ValueError`."""
    return Scope(project_id=message.project_id, module_id=message.module_id, session_ids=tuple(message.session_ids))


def weighted_messages(weights: Mapping[str, float]) -> list[pb.WeightedRef]:
    """Return refs with weights as messages, in their order."""
    return [pb.WeightedRef(ref=ref, weight=weight) for ref, weight in weights.items()]


def weights_of(messages: Iterable[pb.WeightedRef]) -> dict[str, float]:
    """Return the refs and weights in messages. Raises :class:`ValueError`."""
    return {one.ref: _finite(one.weight) for one in messages}


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError("is no number")
    return number


def projection_message(projection: GraphProjection) -> pb.NeighbourhoodReply:
    """Return the neighbourhood as a message."""
    return pb.NeighbourhoodReply(
        nodes=map(node_message, projection.nodes),
        proximity=weighted_messages(projection.proximity),
        edges=[
            pb.Edge(from_ref=one.from_ref, to_ref=one.to_ref, type=one.type, weight=one.weight)
            for one in projection.edges
        ],
    )


def projection_of(message: pb.NeighbourhoodReply) -> GraphProjection:
    """Return the neighbourhood in a message. Raises :class:`ValueError`."""
    edges = (Link(one.from_ref, one.to_ref, one.type, _finite(one.weight)) for one in message.edges)
    return GraphProjection(tuple(map(node_of, message.nodes)), weights_of(message.proximity), tuple(edges))


def search_message(
    tenant_id: str,
    intent: str,
    asked: SemanticRetrieval,
    scope: Scope,
    longest: int,
    without: Iterable[str],
    sensitivities: Iterable[str],
) -> pb.SearchRequest:
    """Return the question for what is like an intent as a message."""
    message = pb.SearchRequest(
        tenant=tenant_id,
        intent=intent,
        top_k=asked.top_k,
        threshold=asked.threshold,
        kinds=asked.kinds,
        scope=scope_message(scope),
        longest=longest,
        without=sorted(without),
        sensitivities=sorted(sensitivities),
        speaker=asked.speaker,
    )
    if asked.since is not None:
        message.since.FromDatetime(in_utc(asked.since))
    if asked.until is not None:
        message.until.FromDatetime(in_utc(asked.until))
    return message


def search_of(message: pb.SearchRequest) -> SemanticRetrieval:
    """Return what a message asks for. Raises :class:`ValueError`."""
    if len(message.intent) > LONGEST_INTENT:
        raise ValueError("its intent is too long")
    return SemanticRetrieval(
        top_k=message.top_k,
        threshold=message.threshold,
        kinds=tuple(message.kinds),
        speaker=message.speaker,
        since=message.since.ToDatetime(UTC) if message.HasField("since") else None,
        until=message.until.ToDatetime(UTC) if message.HasField("until") else None,
    )


def document_message(document: VectorDocument) -> pb.VectorDocument:
    """Return what was found as a message."""
    node = node_message(document.node)
    passages = (
        pb.Passage(
            place=one.place,
            text=one.passage.text,
            headings=one.passage.headings,
            opens=one.passage.opens,
            likeness=one.likeness,
        )
        for one in document.passages
    )
    return pb.VectorDocument(
        node=node,
        similarity=document.similarity,
        by_meaning=document.by_meaning,
        passages=passages,
        seed=document.seed,
    )


def document_of(message: pb.VectorDocument) -> VectorDocument:
    """Return what was found in a message. Raises :class:`ValueError`."""
    passages = (
        Part(one.place, Passage(one.text, tuple(one.headings), opens=one.opens), _finite(one.likeness))
        for one in message.passages
    )
    return VectorDocument(
        node_of(message.node),
        _finite(message.similarity),
        message.by_meaning,
        tuple(sorted(passages)),
        _finite(message.seed),
    )


def question_message(agent: Agent, sources: Iterable[GovernedSource], context: DecisionContext) -> pb.DecideRequest:
    """Return the question of an agent about sources as a message."""
    message = pb.DecideRequest(
        agent=pb.Agent(tenant=agent.tenant, roles=sorted(agent.roles), sub=agent.sub, oversees=agent.oversees),
        sources=[
            pb.GovernedSource(**{name: getattr(one, name) for name in _SOURCE}, tags=sorted(one.tags))
            for one in sources
        ],
        intent=context.intent,
    )
    message.time.FromDatetime(context.time)
    return message


def question_of(message: pb.DecideRequest) -> tuple[Agent, list[GovernedSource], DecisionContext]:
    """Return the agent, the sources and the context in a message."""
    agent = Agent(message.agent.tenant, frozenset(message.agent.roles), message.agent.sub, message.agent.oversees)
    sources = [
        GovernedSource(**{name: getattr(one, name) for name in _SOURCE}, tags=frozenset(one.tags))
        for one in message.sources
    ]
    return agent, sources, DecisionContext(message.intent, message.time.ToDatetime(UTC))


def report_message(report: AccessReport) -> pb.DecideReply:
    """Return decisions as a message."""
    return pb.DecideReply(
        decisions=[
            pb.AccessDecision(ref=one.ref, access=_TO_MESSAGE[one.access], policies=one.policies, reason=one.reason)
            for one in report.decisions
        ],
        policy_version=report.policy_version,
        governance=report.governance,
        depends_on_time=report.depends_on_time,
        by_sensitivity=report.by_sensitivity,
        known=sorted(report.known),
    )


def report_of(message: pb.DecideReply) -> AccessReport:
    """Return the decisions in a message; what is no access that is known is a denial."""
    decisions = (
        AccessDecision(one.ref, _OF_MESSAGE.get(one.access, Access.DENIED), tuple(one.policies), one.reason)
        for one in message.decisions
    )
    known = frozenset(message.known)
    return AccessReport(
        tuple(decisions),
        message.policy_version,
        message.governance,
        message.depends_on_time,
        known,
        message.by_sensitivity,
    )


def redacted_message(texts: Iterable[str | None]) -> pb.RedactReply:
    """Return redacted texts as a message."""
    return pb.RedactReply(texts=[pb.RedactedText(text=text) for text in texts])


def redacted_of(message: pb.RedactReply) -> list[str | None]:
    """Return the redacted texts in a message; None for one that could not be redacted."""
    return [one.text if one.HasField("text") else None for one in message.texts]
