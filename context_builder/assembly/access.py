"""An access policy decides how each candidate of a prompt may be seen, before anything is redacted or counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Generic, NamedTuple, Protocol, TypeVar

from context_builder.assembly.candidate import Candidate

T = TypeVar("T")


class Access(StrEnum):
    """Says how a source may be seen."""

    READ = "read"
    REDACTED = "redacted"
    DENIED = "denied"


class Redacted(NamedTuple, Generic[T]):
    """Holds a value as it may be shown, what was done to it, and whether a mark stands for some of it."""

    value: T
    altered: str = ""
    withheld: bool = False


class Ruling(NamedTuple):
    """Holds how one candidate may be seen, and why; the reason quotes nothing of it.

    ``redacted`` is the candidate as it may be shown, where the policy redacts it itself; ``similarity`` that to the
    query, where only what is shown may tell it.
    """

    access: Access
    reason: str = ""
    redacted: Redacted[Candidate] | None = None
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class AccessQuestion:
    """Holds for whom and for what candidates are wanted."""

    query: str
    now: datetime
    tenant_id: str | None = None
    user_id: str | None = None


class AccessPolicy(Protocol):
    """Decides for a prompt how its candidates may be seen."""

    async def decide(self, candidates: Sequence[Candidate], question: AccessQuestion) -> Mapping[str, Ruling]:
        """Return a ruling for each candidate by its id; a candidate without one is denied."""
        ...
