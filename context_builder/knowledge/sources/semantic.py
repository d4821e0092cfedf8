"""Finds sources similar to the request's intent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.retrieval.source import RetrievalQuery
from context_builder.knowledge.request import SemanticRetrieval
from context_builder.knowledge.services import VectorDocument, VectorMemory
from context_builder.knowledge.sources.query import PackageQuery

SEMANTIC: Final = "semantic"


class SemanticSource:
    """Offers what a vector memory finds; a source of a pipeline of packages."""

    name = SEMANTIC

    def __init__(self, memory: VectorMemory) -> None:
        self._memory = memory

    async def find(self, query: RetrievalQuery) -> Sequence[Candidate]:
        query = PackageQuery.of(query)
        asked, alike = query.request.retrieval.semantic, query.findings.alike
        if asked is None:
            return ()
        try:
            found = await self._alike(query, asked)
        except BaseException:
            if alike is not None and not alike.done():
                alike.set_result(())
            raise
        if alike is not None and not alike.done():
            alike.set_result(found)
        return [one.node.candidate(SEMANTIC, similarity=one.similarity) for one in found]

    async def warm_up(self) -> None:
        """Do nothing: the memory connects at its first use."""

    async def _alike(self, query: PackageQuery, asked: SemanticRetrieval) -> Sequence[VectorDocument]:
        if not query.query.strip():
            return ()
        return await self._memory.search(query.tenant, query.query, asked, query.request.scope, query.longest)
