"""Graph, vector memory and metadata index run in this process, on the artifacts' database and the memory store."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from context_builder.knowledge.artifact import ENTITY_REFS, Link
from context_builder.knowledge.excerpt import Part
from context_builder.knowledge.node import KnowledgeNode
from context_builder.knowledge.prior import naming, prior
from context_builder.knowledge.request import GraphRetrieval, MetadataRetrieval, Scope, SemanticRetrieval
from context_builder.knowledge.services import GraphProjection, VectorDocument
from context_builder.knowledge.store import ArtifactFilter, KnowledgeStore, document_space, passage_of
from context_builder.memory.memory import MemoryFilter, MemoryQuery, MemoryStore, SearchResult, point_number

PASSAGES: Final = 1.5
"""Passages that are looked for, for each document that is wanted: several may be of one."""

SAID: Final = ("point", "message")
"""Kinds of memory that are sources of packages, beside documents."""

_MOST_PASSAGES: Final = 300
_SESSION: Final = "session:"
_BY_MEANING: Final = "vector"


class LocalNodes:
    """Implements :class:`~context_builder.knowledge.services.MetadataIndex`."""

    def __init__(self, store: KnowledgeStore) -> None:
        self._store = store

    async def find(self, tenant_id: str, asked: MetadataRetrieval, scope: Scope, longest: int) -> list[KnowledgeNode]:
        where = ArtifactFilter(
            project_id=scope.project_id or None,
            types=asked.types,
            statuses=asked.statuses,
            modules=asked.modules or ((scope.module_id,) if scope.module_id else ()),
            tags=asked.tags,
        )
        if where == ArtifactFilter():
            return []
        nodes = await self.nodes(tenant_id, await self._store.matching(tenant_id, where, asked.limit), longest)
        return list(nodes.values())

    async def nodes(self, tenant_id: str, refs: Sequence[str], longest: int) -> dict[str, KnowledgeNode]:
        found = await self._store.nodes(tenant_id, refs, longest)
        return {ref: found[ref] for ref in refs if ref in found}


class LocalGraph:
    """Implements :class:`~context_builder.knowledge.services.KnowledgeGraph`."""

    def __init__(self, store: KnowledgeStore) -> None:
        self._store = store

    async def neighbourhood(
        self,
        tenant_id: str,
        seeds: Mapping[str, float],
        asked: GraphRetrieval,
        longest: int,
        known: Mapping[str, KnowledgeNode],
    ) -> GraphProjection:
        around = await self._store.neighbourhood(tenant_id, list(seeds), depth=asked.depth, edge_types=asked.edge_types)
        near = proximity(seeds, around.edges)
        nearest = sorted(near, key=lambda ref: -near[ref])[: asked.limit]
        loaded = await self._store.nodes(tenant_id, [ref for ref in nearest if ref not in known], longest)
        nodes = {ref: node for ref in nearest if (node := known.get(ref) or loaded.get(ref)) is not None}
        edges = tuple(edge for edge in around.edges if _joins(edge, nodes))
        return GraphProjection(tuple(nodes.values()), near, edges)


def _joins(edge: Link, nodes: Collection[str]) -> bool:
    """Return whether the edge is from node to node, or between a node and an entity."""
    begins, ends = edge.from_ref in nodes, edge.to_ref in nodes
    return (begins and (ends or edge.to_ref.startswith(ENTITY_REFS))) or (
        ends and edge.from_ref.startswith(ENTITY_REFS)
    )


class LocalVectors:
    """Implements :class:`~context_builder.knowledge.services.VectorMemory`."""

    def __init__(self, store: KnowledgeStore, memory: MemoryStore) -> None:
        self._store = store
        self._memory = memory

    async def search(
        self,
        tenant_id: str,
        intent: str,
        asked: SemanticRetrieval,
        scope: Scope,
        longest: int,
        without: Collection[str] = (),
        sensitivities: Collection[str] = (),
    ) -> list[VectorDocument]:
        documents = tuple(kind for kind in asked.kinds if kind not in SAID)
        said = tuple(kind for kind in SAID if kind in asked.kinds) if asked.kinds else SAID
        of = tuple(sorted(sensitivities))
        searches = []
        if documents or not asked.kinds:
            searches.append(self._documents(tenant_id, intent, asked, documents, scope, without, of))
        if said:
            searches.append(self._said(tenant_id, intent, asked, said, scope, without, of))
        best: dict[str, tuple[float, bool]] = {}
        seeds: dict[str, float] = {}
        passages: dict[str, list[Part]] = {}
        for found in await asyncio.gather(*searches):
            for ref, result in found:
                by_meaning = _BY_MEANING in result.origins
                similarity, before = best.get(ref, (-1.0, False))
                best[ref] = max(similarity, result.score), by_meaning or before
                seeds[ref] = max(seeds.get(ref, 0.0), result.seed)
                if (part := passage_of(result)) is not None:
                    passages.setdefault(ref, []).append(part)
        order = sorted(best, key=lambda ref: -best[ref][0])[: asked.top_k]
        nodes = await self._store.nodes(tenant_id, order, longest)
        return [
            VectorDocument(node, *best[ref], tuple(sorted(passages.get(ref, ()))), seeds[ref])
            for ref in order
            if (node := nodes.get(ref)) is not None
        ]

    async def _documents(
        self,
        tenant_id: str,
        intent: str,
        asked: SemanticRetrieval,
        kinds: tuple[str, ...],
        scope: Scope,
        without: Collection[str],
        sensitivities: tuple[str, ...],
    ) -> list[tuple[str, SearchResult]]:
        most = min(round(asked.top_k * PASSAGES), max(asked.top_k, _MOST_PASSAGES))
        project = scope.project_id or None
        left_out = tuple(sorted(without))  # an artifact's passages are remembered under its ref
        where = MemoryFilter(user_id=project, kinds=kinds, without_sessions=left_out, sensitivities=sensitivities)
        query = MemoryQuery(intent, most, asked.threshold, where, standalone=True)
        found = await self._memory.search(document_space(tenant_id), query)
        named = naming(intent, [one.memory.text for one in found])
        factors = [prior(one.memory, intent) * factor for one, factor in zip(found, named, strict=True)]
        return [
            (one.memory.metadata["ref"], replace(one, score=one.score * factor, seed=one.seed * factor))
            for one, factor in zip(found, factors, strict=True)
        ]

    async def _said(
        self,
        tenant_id: str,
        intent: str,
        asked: SemanticRetrieval,
        kinds: tuple[str, ...],
        scope: Scope,
        without: Collection[str],
        sensitivities: tuple[str, ...],
    ) -> list[tuple[str, SearchResult]]:
        if scope.project_id and not scope.session_ids:
            return []  # sessions belong to no project: those that are named take part
        sessions = scope.session_ids or (None,)
        left_out = tuple(sorted(ref.removeprefix(_SESSION) for ref in without if ref.startswith(_SESSION)))
        filters = [
            MemoryFilter(
                session_id=session,
                kinds=kinds,
                since=asked.since,
                until=asked.until,
                with_unowned=True,
                speaker=asked.speaker or None,
                without_sessions=left_out,
                sensitivities=sensitivities,
            )
            for session in sessions
        ]
        found = await asyncio.gather(
            *(
                self._memory.search(
                    tenant_id, MemoryQuery(intent, asked.top_k, asked.threshold, where, with_texts=False)
                )
                for where in filters
            )
        )
        return [(ref, one) for results in found for one in results if (ref := said_ref(one.memory)) is not None]


class _Said(Protocol):
    """What tells a memory of a session apart from the others."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def session_id(self) -> str | None: ...
    @property
    def position(self) -> int | None: ...


def said_ref(memory: _Said) -> str | None:
    """Return the ref of a message or point; None for a memory that cannot be referred to."""
    if memory.session_id is None:
        return None
    if memory.kind == "message":
        return None if memory.position is None else f"message:{memory.session_id}/{memory.position}"
    number = point_number(memory.session_id, memory.id)
    return None if number is None else f"point:{memory.session_id}/{number}"


DAMPING: Final = 0.7
"""Chance that a walk goes on rather than beginning again. Page et al. (The PageRank Citation Ranking, 1999) take 0.85
for the whole web; nearer to where a walk begins, passages were found better (``./scripts/bench packages``)."""

ROUNDS: Final = 12
"""Of power iteration; what is left to spread is then 0.7 ** 12, one hundredth."""


def proximity(seeds: Mapping[str, float], edges: Iterable[Link]) -> dict[str, float]:
    """Return the share of a random walk's steps at each node, the nearest node's scaled to 1.

    The walk begins at the ``seeds``, by their weights, follows edges in proportion to their weights, and begins again
    where there are none. Empty without a seed of positive weight.
    """
    total = sum(weight for weight in seeds.values() if weight > 0)
    if not total:
        return {}
    places = {ref: place for place, ref in enumerate(ref for ref, weight in seeds.items() if weight > 0)}
    shares = _shares(edges, places)
    start = [0.0] * len(places)
    for ref, weight in seeds.items():
        if weight > 0:
            start[places[ref]] = weight / total
    ends = [place for place in range(len(places)) if place not in shares]
    rank = start
    for _ in range(ROUNDS):
        stopped = sum(rank[place] for place in ends)
        begun = 1 - DAMPING + DAMPING * stopped
        spread = [begun * share for share in start]
        for place, outgoing in shares.items():
            if value := rank[place]:
                for other, share in outgoing:
                    spread[other] += value * share
        rank = spread
    highest = max(rank)
    return {ref: rank[place] / highest for ref, place in places.items() if rank[place]}


def _shares(edges: Iterable[Link], places: dict[str, int]) -> dict[int, list[tuple[int, float]]]:
    """Return of each node the nodes that a walk goes on to, with the damped share of the walks that do.

    Nodes are known by their places, which new ones are given here.
    """
    weights: dict[int, dict[int, float]] = {}
    for one, other, _, weight in edges:
        if one != other:
            here, there = places.setdefault(one, len(places)), places.setdefault(other, len(places))
            outgoing, incoming = weights.setdefault(here, {}), weights.setdefault(there, {})
            outgoing[there] = outgoing.get(there, 0.0) + weight
            incoming[here] = incoming.get(here, 0.0) + weight
    shares: dict[int, list[tuple[int, float]]] = {}
    for place, outgoing in weights.items():
        damped = DAMPING / sum(outgoing.values())
        shares[place] = [(other, weight * damped) for other, weight in outgoing.items()]
    return shares
