"""Finds sources by metadata fields or by the request's scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from context_builder.assembly.access import Access
from context_builder.assembly.candidate import Candidate
from context_builder.assembly.retrieval.source import RetrievalQuery
from context_builder.knowledge.node import KnowledgeNode
from context_builder.knowledge.request import MetadataRetrieval
from context_builder.knowledge.services import MetadataIndex
from context_builder.knowledge.sources.query import Admission, PackageQuery

METADATA: Final = "metadata"

_MOST: Final = 1_000


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
        if query.admission is not None and len(found) >= asked.limit:
            found = await self._admitted(query, query.admission, asked, found)
        return [one.candidate(METADATA) for one in found]

    async def _admitted(
        self, query: PackageQuery, admission: Admission, asked: MetadataRetrieval, found: list[KnowledgeNode]
    ) -> list[KnowledgeNode]:
        """Return as many as are asked for of what may be seen, and what is found with them that may not."""
        most = asked.limit
        while True:
            access = await admission.access(found)
            allowed = [one for one in found if access.get(one.ref, Access.DENIED) is not Access.DENIED]
            if not access or len(allowed) >= asked.limit or len(found) < most or most >= _MOST:
                denied = [one for one in found if access.get(one.ref, Access.DENIED) is Access.DENIED]
                return [*allowed[: asked.limit], *denied]
            most = min(4 * most, _MOST)
            wider = asked.model_copy(update={"limit": most})
            found = await self._index.find(query.tenant, wider, query.request.scope, query.longest)

    async def warm_up(self) -> None:
        """Do nothing: the index connects at its first use."""
