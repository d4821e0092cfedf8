"""A package is composed of the sources that fit, and its record of every candidate's verdict. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

import orjson
from ulid import ULID

from context_builder.assembly.budget import Outcome, Receipt
from context_builder.assembly.candidate import Candidate
from context_builder.assembly.section import Item
from context_builder.knowledge.fit import PackageDraft, heading
from context_builder.knowledge.node import node_of
from context_builder.knowledge.package import ContextPackage, ContextSource, Coverage, CoverageState, Projection
from context_builder.knowledge.revision import CandidateVerdict, PackageRevision, PolicyDecision
from context_builder.knowledge.sources import GRAPH, METADATA, PINNED, SEMANTIC
from context_builder.knowledge.view import view_of
from context_builder.tokens.counter import ENCODING

_OUTCOMES: Final = {Outcome.DROPPED: "excluded"}


class PackageIds(NamedTuple):
    """The ids of a package, and the number of its revision."""

    package_id: str
    request_id: str
    revision: int


def packaged(draft: PackageDraft, ids: PackageIds, trace_id: str, *, is_cached: bool) -> ContextPackage:
    """Return the package of a draft; ``is_cached`` says whether it can be."""
    receipts, report, now = draft.fit.receipts(), draft.access.report, draft.now
    request, bundle = draft.query.request, draft.fit.bundle
    known = report.known if report else frozenset()
    sources = tuple(
        _source(item, tokens, pinned=item.id in request.pinned, redacted=item.id in draft.governed.redacted)
        for item, tokens in zip(bundle.items, draft.fit.tokens, strict=True)
    )
    return ContextPackage(
        context_package_id=ids.package_id,
        context_build_request_id=ids.request_id,
        revision=ids.revision,
        task_id=request.task_id,
        trace_id=trace_id,
        tenant_id=draft.query.tenant,
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
        coverage=_coverage(draft, receipts, is_cached=is_cached),
        denied=sum(one.outcome is Outcome.DENIED and (one.id in known or draft.agent.knows_all) for one in receipts),
        redacted=sum(one.projection.is_redacted and one.ref in known for one in sources),
        excluded=sum(one.outcome in (Outcome.DROPPED, Outcome.WITHHELD) for one in receipts),
        rebuilt=ids.revision > 1,
        view=view_of(draft.agent, report),
    )


def revision_of(package: ContextPackage, draft: PackageDraft, traceparent: str) -> PackageRevision:
    """Return what is recorded of a package."""
    report, agent = draft.access.report, draft.agent
    offered = [one for candidates in (*draft.governed.lists, draft.governed.denied) for one in candidates]
    versions = {one.id: node_of(one).version or None for one in offered}
    return PackageRevision(
        package_id=package.context_package_id,
        request_id=package.context_build_request_id,
        created_at=draft.now,
        body=orjson.Fragment(package.json_text),
        candidates=tuple(_verdict(one, versions.get(one.id)) for one in draft.fit.receipts()),
        decision=PolicyDecision(
            package.policy_decision_id,
            package.policy_version,
            agent.sub,
            tuple(sorted(agent.roles)),
            draft.query.request.agent.model_dump(mode="json"),
            report.decisions if report else (),
        ),
        governance_version=str(report.governance if report else 0),
        graph=_graph(draft, package.graph_projection_id),
        trace_id=package.trace_id,
        traceparent=traceparent,
    )


def without_cache(coverage: Coverage) -> Coverage:
    """Return the coverage of a package that could not be cached."""
    reasons = (*coverage.reasons, "cache: unavailable")
    return coverage.model_copy(update={"cache": "unavailable", "reduced": True, "reasons": reasons})


def _source(item: Item, tokens: int, *, pinned: bool, redacted: bool) -> ContextSource:
    candidate = item.candidate or Candidate(item.id, item.text)
    node = node_of(candidate)
    return ContextSource(
        ref=item.id,
        version=node.version,
        kind=node.kind,
        title=str(candidate.metadata["title"]),
        heading=heading(item),
        origins=candidate.origins,
        pinned=pinned,
        projection=Projection.of(redacted=redacted, summarised=item.summarised),
        content=item.text,
        tokens=tokens,
        score=round(candidate.score, 6),
        signals={one.name: round(one.score, 6) for one in candidate.signals},
        sensitivity=node.sensitivity,
        status=node.status,
        link=node.link,
        cites=node.cites,
        superseded_by=node.superseded_by or None,
    )


def _coverage(draft: PackageDraft, receipts: Sequence[Receipt], *, is_cached: bool) -> Coverage:
    retrieval, missing, similar = draft.query.request.retrieval, draft.found.missing, draft.found.similar
    asked = {GRAPH: retrieval.graph, SEMANTIC: retrieval.semantic, METADATA: retrieval.metadata}
    states: dict[str, CoverageState] = {
        name: "off" if what is None else "unavailable" if name in missing else "ok" for name, what in asked.items()
    }
    reasons = [f"{name}: {why}" for name, why in missing.items()]
    if similar is not None and similar.leading and not any(one.by_meaning for one in similar.leading):
        states[SEMANTIC] = "degraded"
        reasons.append("semantic: found by words alone")
    reasons += [f"{name}: {why}" for name, why in draft.access.failures.items()]
    reasons += [f"pinned {ref}: not available" for ref in _absent(draft, receipts)]
    if not is_cached:
        reasons.append("cache: unavailable")
    failed = not is_cached or PINNED in missing or bool(draft.access.failures)
    reduced = failed or any(state in ("unavailable", "degraded") for state in states.values())
    return Coverage(
        graph=states[GRAPH],
        semantic=states[SEMANTIC],
        metadata=states[METADATA],
        cache="ok" if is_cached else "unavailable",
        reduced=reduced,
        reasons=tuple(reasons),
    )


def _absent(draft: PackageDraft, receipts: Sequence[Receipt]) -> Iterator[str]:
    """Yield the pinned refs that are denied, unknown, or could not be looked for, in the order of the request."""
    shown = {item.id for item in draft.fit.bundle.items}
    failed = PINNED in draft.found.missing
    denied = {one.id for one in receipts if one.outcome in (Outcome.DENIED, Outcome.WITHHELD)}
    for ref in dict.fromkeys(draft.query.request.pinned):
        if ref in denied or (ref not in shown if failed else ref not in draft.found.pinned):
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


def _graph(draft: PackageDraft, projection_id: str) -> dict[str, Any] | None:
    graph = draft.found.near.projection if draft.found.near is not None else None
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
