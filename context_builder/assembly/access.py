"""An access policy decides how each candidate of a prompt may be seen, before anything is redacted or counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from context_builder.assembly.candidate import Candidate


class Access(StrEnum):
    """Says how a source may be seen."""

    READ = "read"
    REDACTED = "redacted"
    DENIED = "denied"


class Ruling(NamedTuple):
    """Holds how one candidate may be seen, and why; the reason quotes nothing of it."""

    access: Access
    reason: str = ""


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
