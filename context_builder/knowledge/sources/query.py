"""Holds a package's query for all sources, and hands semantic matches to the graph source."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from context_builder.assembly.access import Access
from context_builder.assembly.retrieval.source import RetrievalQuery
from context_builder.knowledge.node import KnowledgeNode
from context_builder.knowledge.request import ContextBuildRequest
from context_builder.knowledge.services import GraphProjection, VectorDocument


@dataclass(slots=True)
class Findings:
    """Holds results of one source that other sources build on."""

    alike: asyncio.Future[Sequence[VectorDocument]] | None = None
    graph: GraphProjection | None = None
    unknown_pinned: tuple[str, ...] = ()


class Admission(Protocol):
    """Tells what an agent may see, so that nothing else takes the place of what it may, or leads there."""

    async def access(self, nodes: Sequence[KnowledgeNode]) -> Mapping[str, Access]:
        """Return how each node may be seen, by its ref; a node that is left out may not be."""
        ...

    async def begins(self, refs: Sequence[str]) -> frozenset[str]:
        """Return those of the refs, of nodes and of sessions, where a walk in the graph may begin."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageQuery(RetrievalQuery):
    """Asks for what a request wants, of a tenant. ``longest`` is in characters.

    Without an ``admission``, every source may be seen.
    """

    request: ContextBuildRequest
    tenant: str
    longest: int
    findings: Findings = field(default_factory=Findings)
    admission: Admission | None = None

    @property
    def is_blank(self) -> bool:
        """Return False: what is pinned, near or of the scope is looked for whatever the intent is."""
        return False

    @classmethod
    def of(cls, query: RetrievalQuery) -> PackageQuery:
        """Return the query itself. Raises :class:`TypeError` for that of another kind of prompt."""
        if not isinstance(query, cls):
            raise TypeError(f"a source of packages was asked with a {type(query).__name__}")
        return query
