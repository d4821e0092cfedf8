"""Requests and revisions to be recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from context_builder.clock import Instant
from context_builder.knowledge.governance.decision import Access, AccessDecision
from context_builder.knowledge.record import PackageRecord
from context_builder.knowledge.revision import CandidateVerdict, PackageRevision, PolicyDecision, RecordedCaller

START = datetime(2021, 11, 22, 12, tzinfo=UTC)
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
ANN = RecordedCaller("ann", ("writer",))


class StoppedClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> Instant:
        return Instant(self.time.timestamp(), 0.0)

    def move(self, **by: float) -> None:
        self.time += timedelta(**by)


def source(ref: str, content: str = "Label every call.", title: str = "Protocol") -> dict[str, Any]:
    shown = {"title": title, "heading": f"{title} (document)" if title else "", "content": content}
    return {"ref": ref, "version": 3, "kind": "document", **shown, "tokens": 5, "score": 0.8}


def body(package_id: str, sources: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "contextPackageId": package_id,
        "revision": 0,
        "graphProjectionId": "gpr_1",
        "tokenBudget": 4000,
        "tokensUsed": 12,
        "denied": 1,
        "redacted": 0,
        "excluded": 0,
        "sources": list(sources),
    }


def revision(
    package_id: str,
    at: datetime,
    sources: Sequence[dict[str, Any]],
    denied: Iterable[str] = ("artifact:secret",),
    number: int = 1,
) -> PackageRevision:
    included = [
        CandidateVerdict(one["ref"], 3, "included", "", 0.8, {"semantic": 0.7}, 5, ("semantic",)) for one in sources
    ]
    refused = [CandidateVerdict(ref, 1, "denied", "no policy permits") for ref in denied]
    decisions = [
        AccessDecision(one.ref, Access.READ, ("default#1",), "policy default#1 permits read") for one in included
    ]
    decisions += [AccessDecision(one.ref, Access.DENIED, (), "no policy permits") for one in refused]
    return PackageRevision(
        package_id=package_id,
        request_id=f"cbr_{package_id}",
        created_at=at,
        body=body(package_id, sources),
        candidates=(*included, *refused),
        decision=PolicyDecision(
            f"pdn_{package_id}_{number}", "sha256:p", ANN.sub, ANN.roles, {"id": "agent-7"}, tuple(decisions)
        ),
        governance_version="7",
        graph={"nodes": []},
    )


async def begun(record: PackageRecord, package_id: str, tenant: str = "lab", task_id: str = "task-17") -> None:
    await record.begin(
        tenant,
        f"cbr_{package_id}",
        caller=ANN,
        request={"intent": "Choose a strategy", "tokenBudget": 4000, "pinned": ["artifact:a"]},
        trace_id=TRACE,
        traceparent=TRACEPARENT,
        task_id=task_id,
        package_id=package_id,
    )


async def built(
    record: PackageRecord,
    package_id: str,
    at: datetime,
    sources: Sequence[dict[str, Any]] = (),
    tenant: str = "lab",
    **request: str,
) -> None:
    """Record a request and its first revision."""
    await begun(record, package_id, tenant, **request)
    assert await record.finish(tenant, revision(package_id, at, sources or [source("artifact:a")])) == 1
