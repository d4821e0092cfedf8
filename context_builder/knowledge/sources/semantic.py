"""Finds sources similar to the request's intent."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from context_builder.assembly.access import Access
from context_builder.assembly.candidate import Candidate
from context_builder.assembly.retrieval.source import RetrievalQuery
from context_builder.knowledge.node import is_found_redacted
from context_builder.knowledge.request import SemanticRetrieval
from context_builder.knowledge.services import VectorDocument, VectorMemory
from context_builder.knowledge.sources.query import PackageQuery

SEMANTIC: Final = "semantic"

_ROUNDS: Final = 3
"""Further searches without what may not be seen."""

_MOST: Final = 1_000


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
        leading: Sequence[VectorDocument] = ()
        try:
            found, leading = await self._admitted(query, asked)
        finally:
            if alike is not None and not alike.done():
                alike.set_result(leading)
        return [one.node.candidate(SEMANTIC, similarity=one.similarity, passages=one.passages) for one in found]

    async def _admitted(
        self, query: PackageQuery, asked: SemanticRetrieval
    ) -> tuple[list[VectorDocument], list[VectorDocument]]:
        """Return what is alike, and what of it may lead to more.

        It is found as if there were nothing that may not be seen; what there is of that comes last, for the record.
        """
        found = list(await self._alike(query, asked))
        if query.admission is None:
            return found, found
        denied: dict[str, VectorDocument] = {}
        without: set[str] = set()
        access = await query.admission.access([one.node for one in found])
        for _ in range(_ROUNDS):
            hidden = [one for one in found if access.get(one.node.ref, Access.DENIED) is Access.DENIED]
            if not access or not hidden:
                break
            denied |= {one.node.ref: one for one in hidden}
            seen = {one.node.session for one in found if one not in hidden}
            without |= {ref for one in hidden if (ref := _left_out(one, seen))}
            most = min(asked.top_k + len(denied), _MOST)
            found = list(await self._alike(query, asked.model_copy(update={"top_k": most}), without))
            access = await query.admission.access([one.node for one in found])
        allowed = [one for one in found if access.get(one.node.ref, Access.DENIED) is not Access.DENIED][: asked.top_k]
        denied |= {one.node.ref: one for one in found if access.get(one.node.ref, Access.DENIED) is Access.DENIED}
        leading = [one for one in allowed if access[one.node.ref] is Access.READ or is_found_redacted(one.node)]
        return [*allowed, *denied.values()], leading

    async def warm_up(self) -> None:
        """Do nothing: the memory connects at its first use."""

    async def _alike(
        self, query: PackageQuery, asked: SemanticRetrieval, without: Collection[str] = ()
    ) -> Sequence[VectorDocument]:
        if not query.query.strip():
            return ()
        more = {"without": without} if without else {}
        return await self._memory.search(query.tenant, query.query, asked, query.request.scope, query.longest, **more)


def _left_out(hidden: VectorDocument, seen: Collection[str]) -> str:
    """Return the ref that a search leaves out with what is hidden; empty where others of its session are seen."""
    if not hidden.node.session:
        return hidden.node.ref
    return "" if hidden.node.session in seen else f"session:{hidden.node.session}"
