"""The ranking signals of context packages, each 0..1; a source's score is their weighted mean.

A :class:`~context_builder.assembly.builder.ContextBuilder` may be given them too; what is not a node of the graph
then is of unknown quality, and was never reused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.select import RankingQuery, RankingSignal, freshness
from context_builder.clock import moment
from context_builder.knowledge.node import KnowledgeNode
from context_builder.knowledge.weights import PackageWeights

SUPERSEDED: Final = 0.2
"""Recency of what is superseded or stale is multiplied by this."""

OUTDATED: Final = 0.6
"""So is its relevance by this: near and alike as it may be, what replaces it tells more."""

UNKNOWN_QUALITY: Final = 0.5

_GONE: Final = frozenset({"superseded", "stale"})


@dataclass(frozen=True, slots=True)
class Semantic:
    """Scores by similarity to the intent."""

    weight: float
    name: ClassVar[str] = "semantic"

    def score(self, candidate: Candidate, query: RankingQuery) -> float:
        return min(1.0, max(0.0, candidate.base_score)) * (OUTDATED if _is_gone(candidate) else 1)


@dataclass(frozen=True, slots=True)
class Graph:
    """Scores by nearness in the graph to the scope, the pinned sources and nodes similar to the intent."""

    weight: float
    name: ClassVar[str] = "graph"

    def score(self, candidate: Candidate, query: RankingQuery) -> float:
        return candidate.evidence.get("graph", 0.0) * (OUTDATED if _is_gone(candidate) else 1)


@dataclass(frozen=True, slots=True)
class Currency:
    """Scores ``exp(-age / days)``, and much less if the source is superseded or stale."""

    weight: float
    days: float
    name: ClassVar[str] = "recency"

    def score(self, candidate: Candidate, query: RankingQuery) -> float:
        time = candidate.time if candidate.time is None or candidate.time.tzinfo else moment(candidate.time)
        fresh = freshness(time, query.now, self.days)
        return fresh * SUPERSEDED if _is_gone(candidate) else fresh


@dataclass(frozen=True, slots=True)
class Quality:
    """Scores by assessments and feedback."""

    weight: float
    name: ClassVar[str] = "quality"

    def score(self, candidate: Candidate, query: RankingQuery) -> float:
        node = _node(candidate)
        return UNKNOWN_QUALITY if node is None or node.quality is None else node.quality


@dataclass(frozen=True, slots=True)
class Reuse:
    """Scores by how often the source has helped before."""

    weight: float
    name: ClassVar[str] = "reuse"

    def score(self, candidate: Candidate, query: RankingQuery) -> float:
        node = _node(candidate)
        return 0.0 if node is None else node.reuse or 0.0


def package_signals(weights: PackageWeights) -> tuple[RankingSignal, ...]:
    """Return the signals of a package."""
    return (
        Semantic(weights.semantic),
        Graph(weights.graph),
        Currency(weights.recency, weights.days),
        Quality(weights.quality),
        Reuse(weights.reuse),
    )


def _is_gone(candidate: Candidate) -> bool:
    node = _node(candidate)
    return node is not None and (node.superseded_by is not None or node.status in _GONE)


def _node(candidate: Candidate) -> KnowledgeNode | None:
    """Return the node that a candidate was made of; none for what a conversation's memory holds."""
    return candidate.metadata.get("node")
