"""A memory source answers a turn's query, and keeps records for later turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from context_builder.assembly.candidate import Candidate


@dataclass(frozen=True, slots=True)
class RetrievalQuery:
    """Asks for at most ``top_k`` memories that fit ``query`` with a similarity of at least ``threshold`` (0..1)."""

    query: str
    top_k: int
    threshold: float
    tenant_id: str | None = None
    session_id: str | None = None
    persona_id: str | None = None
    user_id: str | None = None
    embedding: Sequence[float] | None = None

    @property
    def is_blank(self) -> bool:
        """Return whether there is nothing to look for."""
        return not self.query.strip()


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """Holds a redacted text to keep, such as the summary of messages trimmed from a prompt."""

    text: str
    kind: str
    tags: tuple[str, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tenant_id: str | None = None
    session_id: str | None = None
    persona_id: str | None = None
    user_id: str | None = None


class MemorySource(Protocol):
    """Finds memories for turns; any exception is a failure of the memory."""

    @property
    def name(self) -> str:
        """Return what tells it from the builder's other memories, in their health and in ``debug``."""
        ...

    async def find(self, query: RetrievalQuery) -> Sequence[Candidate]:
        """Return what fits, in any order, each with its similarity as ``base_score``; the pipeline takes the best."""
        ...

    async def warm_up(self) -> None:
        """Do what the first call would have to do first, such as connecting."""
        ...


@runtime_checkable
class RecordStore(Protocol):
    """Keeps the summaries of what leaves histories; a source that is one too finds them again."""

    @property
    def name(self) -> str: ...

    async def remember(self, record: MemoryRecord) -> None:
        """Keep the record."""
        ...
