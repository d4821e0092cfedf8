"""Finds sources by metadata fields or by the request's scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.retrieval.source import RetrievalQuery
from context_builder.knowledge.services import MetadataIndex
from context_builder.knowledge.sources.query import PackageQuery

METADATA: Final = "metadata"


class MetadataSource:
    """Offers what a metadata index finds; a source of a pipeline of packages."""

    name = METADATA

    def __init__(self, index: MetadataIndex) -> None:
        self._index = index

    async def find(self, query: RetrievalQuery) -> Sequence[Candidate]:
        query = PackageQuery.of(query)
        asked = query.request.retrieval.metadata
        if asked is None:
            return ()
        found = await self._index.find(query.tenant, asked, query.request.scope, query.longest)
        return [one.candidate(METADATA) for one in found]

    async def warm_up(self) -> None:
        """Do nothing: the index connects at its first use."""
