"""Finds sources connected in the graph with the scope, with pinned sources, and with semantic matches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.retrieval.source import RetrievalQuery
from context_builder.knowledge.services import KnowledgeGraph, VectorDocument
from context_builder.knowledge.sources.query import PackageQuery

GRAPH: Final = "graph"

SEEDS: Final = 20
"""Of what is like the intent, so many of the best are where walks begin."""

SHARPNESS: Final = 4
SHARPNESS_BY_MEANING: Final = 8
"""What is alike weighs as a seed by this power of its similarity, so that walks begin at the most alike. Similarities
made of two rankings, by meaning and by words, lie closer together."""

_NAMED: Final = 1.0
"""Weight of a seed that the request names."""


class GraphSource:
    """Offers the neighbourhood in a graph; a source of a pipeline of packages.

    It waits ``patience`` seconds for what is like the intent, then goes on with what the request names.
    """

    name = GRAPH

    def __init__(self, graph: KnowledgeGraph, patience: float) -> None:
        self._graph = graph
        self._patience = patience

    async def find(self, query: RetrievalQuery) -> Sequence[Candidate]:
        query = PackageQuery.of(query)
        asked, request = query.request.retrieval.graph, query.request
        if asked is None:
            return ()
        named = [*(f"session:{session}" for session in request.scope.session_ids), *request.pinned]
        if named and query.admission is not None:
            begins = await query.admission.begins(named)
            named = [ref for ref in named if ref in begins]
        seeds = dict.fromkeys(named, _NAMED)
        if request.task_id:
            seeds[f"task:{request.task_id}"] = _NAMED
        found_alike = await self._alike(query)
        alike = {one.node.ref: one for one in found_alike[:SEEDS]}
        sharpness = SHARPNESS_BY_MEANING if any(one.by_meaning for one in alike.values()) else SHARPNESS
        for ref, one in alike.items():
            seeds[ref] = seeds.get(ref, 0.0) + one.similarity**sharpness
        if not seeds:
            return ()
        known = {one.node.ref: one.node for one in found_alike}
        found = await self._graph.neighbourhood(query.tenant, seeds, asked, query.longest, known)
        query.findings.graph = found
        nodes = {one.ref: one for one in found.nodes} | {ref: one.node for ref, one in alike.items()}
        return [node.candidate(GRAPH, proximity=found.proximity.get(ref, 0.0)) for ref, node in nodes.items()]

    async def warm_up(self) -> None:
        """Do nothing: the graph connects at its first use."""

    async def _alike(self, query: PackageQuery) -> Sequence[VectorDocument]:
        if query.findings.alike is None:
            return ()
        done, _ = await asyncio.wait([query.findings.alike], timeout=self._patience)
        return query.findings.alike.result() if done else ()
