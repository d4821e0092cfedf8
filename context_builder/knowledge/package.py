"""A context package is a ranked bundle of sources that fits its budget, with how it came about.

It is composed of the sources that fit, and its record of every candidate's verdict. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple, Self

import orjson

from context_builder.assembly.budget import Outcome, Receipt
from context_builder.assembly.candidate import Candidate
from context_builder.assembly.section import Item
from context_builder.knowledge.artifact import CamelModel, Ref
from context_builder.knowledge.fit import AssembledPackage, heading
from context_builder.knowledge.governance import Agent
from context_builder.knowledge.node import KnowledgeNode, node_of
from context_builder.knowledge.revision import CandidateVerdict, PackageRevision, PolicyDecision
from context_builder.knowledge.services import AccessReport
from context_builder.knowledge.sources import GRAPH, METADATA, PINNED, SEMANTIC
from context_builder.tokens.counter import ENCODING

CoverageState = Literal["ok", "off", "unavailable", "degraded"]


class Projection(StrEnum):
    """Tells how much of a source is shown."""

    FULL = "full"
    REDACTED = "redacted"
    SUMMARISED = "summarised"
    REDACTED_AND_SUMMARISED = "redacted+summarised"

    @property
    def is_redacted(self) -> bool:
        return self in (self.REDACTED, self.REDACTED_AND_SUMMARISED)

    @property
    def is_summarised(self) -> bool:
        return self in (self.SUMMARISED, self.REDACTED_AND_SUMMARISED)


PROJECTIONS: Final = {
    (False, False): Projection.FULL,
    (False, True): Projection.SUMMARISED,
    (True, False): Projection.REDACTED,
    (True, True): Projection.REDACTED_AND_SUMMARISED,
}
"""The projection of a source, by whether it is redacted and whether it is summarised."""


class ContextSource(CamelModel):
    """One source as it is shown. ``tokens`` are those of its entry as rendered; ``link`` leads to the whole source.

    ``heading`` is the line that it stands under, beside its number.
    """

    ref: Ref
    version: int
    kind: str
    title: str
    heading: str
    origins: tuple[str, ...]
    pinned: bool
    projection: Projection
    content: str
    tokens: int
    score: float
    signals: dict[str, float]
    sensitivity: str
    status: str
    link: str
    cites: tuple[str, ...] = ()
    superseded_by: str | None = None


class Coverage(CamelModel):
    """Tells which sources answered; ``reduced`` unless all that were asked did, wholly."""

    graph: CoverageState
    semantic: CoverageState
    metadata: CoverageState
    cache: CoverageState
    reduced: bool
    reasons: tuple[str, ...] = ()


class ContextPackage(CamelModel):
    """A package as it is served; times are ISO 8601 in UTC.

    ``tokens_used`` is the exact count of what it renders to. ``view`` names for whom, and by which policies, it was
    decided what is in it: whoever has the same view may be served it as it is.
    """

    context_package_id: str
    context_build_request_id: str
    revision: int
    task_id: str
    trace_id: str
    tenant_id: str
    graph_projection_id: str
    policy_decision_id: str
    policy_version: str
    created_at: str
    expires_at: str
    ttl_seconds: int
    token_budget: int
    tokens_used: int
    token_encoding: str
    sources: tuple[ContextSource, ...]
    coverage: Coverage
    denied: int
    redacted: int
    excluded: int
    rebuilt: bool = False
    stale: tuple[str, ...] = ()
    view: str = ""

    @cached_property
    def json_text(self) -> str:
        """The package's JSON as it is served, recorded and cached, which is made once."""
        return self.model_dump_json(by_alias=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("json_text", None)  # which pydantic copies, too
        return copied


_OUTCOMES: Final = {Outcome.DROPPED: "excluded"}


class PackageIds(NamedTuple):
    """The ids of a package, and the number of its revision."""

    package_id: str
    request_id: str
    revision: int


def packaged(assembled: AssembledPackage, ids: PackageIds, trace_id: str, *, is_cached: bool) -> ContextPackage:
    """Return the package as it is served; ``is_cached`` says whether it can be."""
    from ulid import ULID  # of an extra that whoever only shows a package may lack

    receipts, report, now = assembled.fit.receipts(), assembled.access.report, assembled.now
    request, bundle = assembled.query.request, assembled.fit.bundle
    known = report.known if report else frozenset()
    sources = _sources(assembled)
    return ContextPackage(
        context_package_id=ids.package_id,
        context_build_request_id=ids.request_id,
        revision=ids.revision,
        task_id=request.task_id,
        trace_id=trace_id,
        tenant_id=assembled.query.tenant,
        graph_projection_id=f"gpr_{ULID()}",
        policy_decision_id=f"pdn_{ULID()}",
        policy_version=report.policy_version if report else "",
        created_at=now.isoformat(timespec="microseconds"),
        expires_at=(now + timedelta(seconds=request.ttl_seconds)).isoformat(timespec="microseconds"),
        ttl_seconds=request.ttl_seconds,
        token_budget=request.token_budget,
        tokens_used=bundle.tokens,
        token_encoding=ENCODING,
        sources=sources,
        coverage=_coverage(assembled, receipts, is_cached=is_cached),
        denied=sum(
            one.outcome is Outcome.DENIED and (one.id in known or assembled.agent.knows_all) for one in receipts
        ),
        redacted=sum(one.ref in assembled.governed.redacted and one.ref in known for one in sources),
        excluded=sum(one.outcome in (Outcome.DROPPED, Outcome.WITHHELD) for one in receipts),
        rebuilt=ids.revision > 1,
        view=view_of(assembled.agent, report),
    )


def revision_of(package: ContextPackage, assembled: AssembledPackage, traceparent: str) -> PackageRevision:
    """Return what is recorded of a package."""
    report, agent = assembled.access.report, assembled.agent
    offered = [one for candidates in (*assembled.governed.lists, assembled.governed.denied) for one in candidates]
    versions = {one.id: node.version or None for one, node in zip(offered, [*map(node_of, offered)], strict=True)}
    return PackageRevision(
        package_id=package.context_package_id,
        request_id=package.context_build_request_id,
        created_at=assembled.now,
        body=orjson.Fragment(package.json_text),
        candidates=tuple(_verdict(one, versions.get(one.id)) for one in assembled.fit.receipts()),
        decision=PolicyDecision(
            package.policy_decision_id,
            package.policy_version,
            agent.sub,
            tuple(sorted(agent.roles)),
            assembled.query.request.agent.model_dump(mode="json"),
            report.decisions if report else (),
        ),
        governance_version=str(report.governance if report else 0),
        graph=_graph(assembled, package.graph_projection_id),
        trace_id=package.trace_id,
        traceparent=traceparent,
    )


def without_cache(coverage: Coverage) -> Coverage:
    """Return the coverage of a package that could not be cached."""
    reasons = (*coverage.reasons, "cache: unavailable")
    return coverage.model_copy(update={"cache": "unavailable", "reduced": True, "reasons": reasons})


def _sources(assembled: AssembledPackage) -> tuple[ContextSource, ...]:
    """Return the sources as they are shown, in their order."""
    items = assembled.fit.bundle.items
    nodes = [*map(node_of, [item.candidate or Candidate(item.id, item.text) for item in items])]
    links, headings = [node.link for node in nodes], [*map(heading, items)]
    shown = zip(items, nodes, links, headings, assembled.fit.tokens, strict=True)
    return tuple([_source(assembled, *each) for each in shown])


def _source(
    assembled: AssembledPackage, item: Item, node: KnowledgeNode, link: str, heading: str, tokens: int
) -> ContextSource:
    candidate = item.candidate or Candidate(item.id, item.text)
    return ContextSource(
        ref=item.id,
        version=node.version,
        kind=node.kind,
        title=str(candidate.metadata["title"]),
        heading=heading,
        origins=candidate.origins,
        pinned=item.id in assembled.query.request.pinned,
        projection=PROJECTIONS[item.id in assembled.governed.redacted, item.summarised],
        content=item.text,
        tokens=tokens,
        score=round(candidate.score, 6),
        signals={one.name: round(one.score, 6) for one in candidate.signals},
        sensitivity=node.sensitivity,
        status=node.status,
        link=link,
        cites=node.cites,
        superseded_by=node.superseded_by or None,
    )


def _coverage(assembled: AssembledPackage, receipts: Sequence[Receipt], *, is_cached: bool) -> Coverage:
    retrieval, missing, similar = assembled.query.request.retrieval, assembled.found.missing, assembled.found.similar
    asked = {GRAPH: retrieval.graph, SEMANTIC: retrieval.semantic, METADATA: retrieval.metadata}
    states: dict[str, CoverageState] = {
        name: "off" if what is None else "unavailable" if name in missing else "ok" for name, what in asked.items()
    }
    reasons = [f"{name}: {why}" for name, why in missing.items()]
    if similar is not None and similar.leading and not any(one.by_meaning for one in similar.leading):
        states[SEMANTIC] = "degraded"
        reasons.append("semantic: found by words alone")
    reasons += [f"{name}: {why}" for name, why in assembled.access.failures.items()]
    reasons += [f"pinned {ref}: not available" for ref in _absent(assembled, receipts)]
    if not is_cached:
        reasons.append("cache: unavailable")
    failed = not is_cached or PINNED in missing or bool(assembled.access.failures)
    reduced = failed or any(state in ("unavailable", "degraded") for state in states.values())
    return Coverage(
        graph=states[GRAPH],
        semantic=states[SEMANTIC],
        metadata=states[METADATA],
        cache="ok" if is_cached else "unavailable",
        reduced=reduced,
        reasons=tuple(reasons),
    )


def _absent(assembled: AssembledPackage, receipts: Sequence[Receipt]) -> Iterator[str]:
    """Yield the pinned refs that are denied, unknown, or could not be looked for, in the order of the request."""
    shown = {item.id for item in assembled.fit.bundle.items}
    failed = PINNED in assembled.found.missing
    denied = {one.id for one in receipts if one.outcome in (Outcome.DENIED, Outcome.WITHHELD)}
    for ref in dict.fromkeys(assembled.query.request.pinned):
        if ref in denied or (ref not in shown if failed else ref not in assembled.found.pinned):
            yield ref


def _verdict(one: Receipt, version: int | None) -> CandidateVerdict:
    return CandidateVerdict(
        ref=one.id,
        version=version,
        outcome=_OUTCOMES.get(one.outcome, one.outcome.value),
        reason=one.reason,
        score=round(one.score, 6),
        signals={signal.name: round(signal.score, 6) for signal in one.signals},
        tokens=one.tokens,
        origins=one.origins,
    )


def _graph(assembled: AssembledPackage, projection_id: str) -> dict[str, Any] | None:
    graph = assembled.found.near.projection if assembled.found.near is not None else None
    if graph is None:
        return None
    ends = (ref for edge in graph.edges for ref in (edge.from_ref, edge.to_ref))
    refs = dict.fromkeys((*(one.ref for one in graph.nodes), *ends))
    return {
        "id": projection_id,
        "nodes": [{"ref": ref, "proximity": round(graph.proximity.get(ref, 0.0), 6)} for ref in refs],
        "edges": [
            {"from": one.from_ref, "to": one.to_ref, "type": one.type, "weight": one.weight} for one in graph.edges
        ],
    }


NEVER: Final = ""
"""View of a package that nobody may be served without another decision."""


def view_of(agent: Agent, report: AccessReport | None) -> str:
    """Return the name of what an agent sees by a report's policies; decisions that depend on time have none."""
    if report is None or report.depends_on_time:
        return NEVER
    who = (agent.tenant, agent.sub, sorted(agent.roles), agent.oversees)
    named = json.dumps([*who, report.governance, report.policy_version])
    return "sha256:" + sha256(named.encode()).hexdigest()
