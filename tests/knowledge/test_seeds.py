"""Walks in the graph begin at what should lead on, which is not always what is most alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pytest

from context_builder.knowledge.node import KnowledgeNode
from context_builder.knowledge.request import ContextBuildRequest, GraphRetrieval
from context_builder.knowledge.services import GraphProjection, VectorDocument
from context_builder.knowledge.sources import SEEDS, SHARPNESS_BY_MEANING, PackageQuery, near

QUERY: Final = PackageQuery(
    request=ContextBuildRequest(intent="Where do moles live?", token_budget=100), tenant="lab", longest=1_000
)


class SeenSeeds:
    """A graph without edges that keeps where walks begin."""

    def __init__(self) -> None:
        self.seeds: dict[str, float] = {}

    async def neighbourhood(
        self,
        tenant_id: str,
        seeds: Mapping[str, float],
        asked: GraphRetrieval,
        longest: int,
        known: Mapping[str, KnowledgeNode],
    ) -> GraphProjection:
        self.seeds = dict(seeds)
        return GraphProjection((), {}, ())


def document(ref: str, similarity: float, seed: float = 0.0) -> VectorDocument:
    node = KnowledgeNode(ref=ref, kind="document", title=ref, content="A text.")
    return VectorDocument(node, similarity, by_meaning=True, seed=seed)


async def test_a_walk_begins_by_likeness_or_by_the_seed_where_that_is_more() -> None:
    graph = SeenSeeds()
    await near(graph, QUERY, GraphRetrieval(), [document("artifact:a", 0.9, 0.5), document("artifact:b", 0.7, 0.8)])
    assert graph.seeds == {
        "artifact:a": pytest.approx(0.9**SHARPNESS_BY_MEANING),
        "artifact:b": pytest.approx(0.8**SHARPNESS_BY_MEANING),
    }


async def test_walks_begin_at_the_best_seeds_however_alike_they_are() -> None:
    graph = SeenSeeds()
    alike = [document(f"artifact:{at}", 0.7 - at / 100, 0.1) for at in range(SEEDS + 5)]
    alike[-1] = replace(alike[-1], seed=0.8)
    await near(graph, QUERY, GraphRetrieval(), alike)
    assert len(graph.seeds) == SEEDS
    assert next(iter(graph.seeds)) == f"artifact:{SEEDS + 4}"
