"""An access policy decides how each candidate of a prompt may be seen, before anything is redacted or counted."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Generic, NamedTuple, Protocol, TypeVar

import structlog

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.phases import span

log = structlog.get_logger(__name__)

T = TypeVar("T")


class Access(StrEnum):
    """How a source may be seen."""

    READ = "read"
    REDACTED = "redacted"
    DENIED = "denied"


class Redacted(NamedTuple, Generic[T]):
    """A value as it may be shown, what was done to it, and whether a mark stands for some of it."""

    value: T
    altered: str = ""
    withheld: bool = False


class Ruling(NamedTuple):
    """How one candidate may be seen, and why; the reason quotes nothing of it.

    ``redacted`` is the candidate as it may be shown, where the policy redacts it itself; ``similarity`` that to the
    query, where only what is shown may tell it.
    """

    access: Access
    reason: str = ""
    redacted: Redacted[Candidate] | None = None
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class AccessQuestion:
    """For whom and for what candidates are wanted."""

    query: str
    now: datetime
    tenant_id: str | None = None
    user_id: str | None = None


class AccessPolicy(Protocol):
    """Decides for a prompt how its candidates may be seen."""

    async def decide(self, candidates: Sequence[Candidate], question: AccessQuestion) -> Mapping[str, Ruling]:
        """Return a ruling for each candidate by its id; a candidate without one is denied."""
        ...


@dataclass(frozen=True, slots=True)
class Governed:
    """What sources offer as an access policy lets it be seen: lists in the order given, without what is ``denied``."""

    lists: Sequence[Sequence[Candidate]]
    rulings: Mapping[str, Ruling] = field(default_factory=dict)
    denied: Sequence[Candidate] = ()

    def is_redacted(self, name: str) -> bool:
        """Return whether the candidate of this id may be seen redacted only."""
        return (ruling := self.rulings.get(name)) is not None and ruling.access is Access.REDACTED


def govern(lists: Sequence[Sequence[Candidate]], rulings: Mapping[str, Ruling]) -> Governed:
    """Return the candidates as ``rulings`` let them be seen; one without a ruling is denied."""
    denied: dict[str, Candidate] = {}

    def allowed(candidates: Sequence[Candidate]) -> list[Candidate]:
        kept = []
        for one in candidates:
            if (ruling := rulings.get(one.id)) is None or ruling.access is Access.DENIED:
                denied.setdefault(one.id, one)
            else:
                kept.append(_as_ruled(one, ruling))
        return kept

    return Governed([allowed(candidates) for candidates in lists], rulings, tuple(denied.values()))


def each_once(lists: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Return the candidates that a policy decides about: the last of each id."""
    return list({one.id: one for candidates in lists for one in candidates}.values())


async def decided(decisions: Awaitable[T], nothing: T) -> T:
    """Return the decisions of an access policy; whatever stops it, ``nothing``, so that all is denied."""
    with span("access"):
        try:
            return await decisions
        except Exception:  # a policy of any kind
            log.exception("access.failed")
            return nothing


def _as_ruled(candidate: Candidate, ruling: Ruling) -> Candidate:
    """Return the candidate as its ruling shows it; how it was found stays, but for what redaction took out."""
    if ruling.redacted is None or ruling.redacted.withheld:
        return candidate
    score = candidate.base_score
    if ruling.similarity is not None and score:
        score = ruling.similarity
    shown = ruling.redacted.value
    return replace(shown, base_score=score, score=score, origins=candidate.origins, evidence=candidate.evidence)
