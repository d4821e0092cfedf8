"""Loads the sources that the request pins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.retrieval.source import RetrievalQuery
from context_builder.knowledge.services import MetadataIndex
from context_builder.knowledge.sources.query import PackageQuery

PINNED: Final = "pinned"


class PinnedSource:
    """Offers the pinned sources; a source of a pipeline of packages."""

    name = PINNED

    def __init__(self, index: MetadataIndex) -> None:
        self._index = index

    async def find(self, query: RetrievalQuery) -> Sequence[Candidate]:
        query = PackageQuery.of(query)
        refs = query.request.pinned
        found = await self._index.nodes(query.tenant, refs, query.longest)
        query.findings.unknown_pinned = tuple(ref for ref in refs if ref not in found)
        return [one.candidate(PINNED) for one in found.values()]

    async def warm_up(self) -> None:
        """Do nothing: the index connects at its first use."""
