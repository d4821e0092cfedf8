"""An audit explains a package: the request, the access decisions, and the outcome of every candidate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson
from typing_extensions import TypedDict

from context_builder.json_shape import Number, Shape
from context_builder.knowledge.artifact import CamelModel, Time


class CandidateAudit(CamelModel):
    """A candidate's outcome and the reason for it; ``tokens`` are 0 if the candidate is not in the package."""

    ref: str
    version: int | None
    verdict: str
    reason: str
    score: float
    signals: dict[str, float]
    tokens: int
    origins: tuple[str, ...]


class SourceDecision(CamelModel):
    """Tells how a source might be seen, by which policies."""

    ref: str
    access: str
    policies: tuple[str, ...]
    reason: str


class DecisionAudit(CamelModel):
    """Tells a decision on all candidates: for whom, as the credential says, and as the request says."""

    policy_decision_id: str
    policy_version: str
    sub: str
    roles: tuple[str, ...]
    agent: dict[str, Any]
    decided_at: Time
    sources: tuple[SourceDecision, ...]


class RevisionAudit(CamelModel):
    """Describes one revision of a package as it was served; ``hash`` is that of the package's JSON."""

    revision: int
    created_at: Time
    governance_version: str
    hash: str
    package: dict[str, Any]
    policy_decision: DecisionAudit
    candidates: tuple[CandidateAudit, ...]
    graph: dict[str, Any] | None


class PackageAudit(CamelModel):
    """Tells of a package: the request and who made it, and each revision; the newest one's decision by itself too."""

    context_package_id: str
    context_build_request_id: str
    status: str
    failure: str
    sub: str
    roles: tuple[str, ...]
    task_id: str
    trace_id: str
    requested_at: Time
    request: dict[str, Any]
    revisions: tuple[RevisionAudit, ...]
    policy_decision: DecisionAudit
    candidates: tuple[CandidateAudit, ...]


class RecordedNode(TypedDict):
    """A node of a neighbourhood, and its share of a random walk, 0 to 1."""

    ref: str
    proximity: Number


RecordedEdge = TypedDict("RecordedEdge", {"from": str, "to": str, "type": str})


class RecordedGraph(TypedDict):
    """The neighbourhood that was used."""

    nodes: list[RecordedNode]
    edges: list[RecordedEdge]


_GRAPH: Final = Shape(RecordedGraph)


def package_audit(recorded: Mapping[str, Any]) -> PackageAudit:
    """Return the audit in what the record holds of a package."""
    asked, revisions = recorded["request"], tuple(map(_revision, recorded["revisions"]))
    return PackageAudit(
        context_package_id=recorded["package_id"],
        context_build_request_id=asked["id"],
        status=asked["status"],
        failure=asked["reason"] or "",
        sub=asked["caller"],
        roles=tuple(asked["roles"]),
        task_id=asked["task_id"],
        trace_id=asked["trace_id"],
        requested_at=asked["requested_at"],
        request=asked["body"],
        revisions=revisions,
        policy_decision=revisions[-1].policy_decision,
        candidates=revisions[-1].candidates,
    )


def _revision(recorded: Mapping[str, Any]) -> RevisionAudit:
    decision = recorded["decision"]
    return RevisionAudit(
        revision=recorded["revision"],
        created_at=recorded["created_at"],
        governance_version=recorded["governance_version"],
        hash=recorded["hash"],
        package=recorded["body"],
        policy_decision=DecisionAudit(
            policy_decision_id=decision["id"],
            policy_version=decision["policy_version"],
            sub=decision["caller"],
            roles=tuple(decision["roles"]),
            agent=decision["agent"],
            decided_at=decision["decided_at"],
            sources=tuple(SourceDecision.model_validate(one) for one in decision["sources"]),
        ),
        candidates=tuple(
            CandidateAudit.model_validate({"verdict": one["outcome"]} | {k: one[k] for k in one if k != "outcome"})
            for one in recorded["candidates"]
        ),
        graph=None if recorded["graph"] is None else {**_GRAPH.whole(orjson.dumps(recorded["graph"]))},
    )
