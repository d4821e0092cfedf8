"""A revision is a package as it was served once, with the verdict on every candidate and the decision behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from context_builder.knowledge.governance.decision import AccessDecision

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RecordedCaller:
    """The caller as the credential said."""

    sub: str
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CandidateVerdict:
    """A candidate's outcome and the reason for it, but never its text.

    ``outcome`` is ``included``, ``denied``, ``excluded`` or the like. ``reason`` quotes nothing of the source.
    """

    ref: str
    version: int | None
    outcome: str
    reason: str = ""
    score: float = 0.0
    signals: Mapping[str, float] = field(default_factory=dict)
    tokens: int = 0
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """The decision about all sources of a package: for whom, by which policies. ``agent`` is as the request says."""

    id: str
    policy_version: str
    caller: str
    roles: tuple[str, ...]
    agent: JsonObject
    sources: tuple[AccessDecision, ...]


@dataclass(frozen=True, slots=True)
class PackageRevision:
    """What the record keeps of one build.

    ``body`` is the package's JSON as served, but for its ``revision``; a Fragment where it is text already.

    ``graph`` is the neighbourhood that was used. ``trace_id`` and ``traceparent`` are those of a rebuild; empty, the
    request's.
    """

    package_id: str
    request_id: str
    created_at: datetime
    body: JsonObject | orjson.Fragment
    candidates: tuple[CandidateVerdict, ...]
    decision: PolicyDecision
    governance_version: str
    graph: JsonObject | None = None
    trace_id: str = ""
    traceparent: str = ""


@dataclass(frozen=True, slots=True)
class RecordedPackage:
    """A package's request and its newest revision.

    In ``body``, a source that was erased since has an empty title and content.
    """

    package_id: str
    request_id: str
    request: JsonObject
    caller: RecordedCaller
    task_id: str
    trace_id: str
    traceparent: str
    revision: int
    body: JsonObject
    governance_version: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PackageEntry:
    """A package's id and the time of its first revision, as listings show them."""

    package_id: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class RecentPackage:
    """A package as lists of packages describe it.

    ``created_at`` is the time of its first revision; ``caller`` asked for it; ``task_id`` and ``project`` are empty
    where it has none. ``sources`` counts those in its newest revision. ``outcome`` is the mean of its feedback, 0 to 1.
    """

    package_id: str
    created_at: datetime
    intent: str = ""
    task_id: str = ""
    project: str = ""
    caller: str = ""
    sources: int = 0
    tokens_used: int = 0
    token_budget: int = 0
    outcome: float | None = None
