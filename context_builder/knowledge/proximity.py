"""How near the nodes of a graph are to some of them: personalised PageRank over edges in both directions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from context_builder.knowledge.artifact import Link

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
    start = {ref: weight / total for ref, weight in seeds.items() if weight > 0}
    shares = _shares(edges)
    rank = start
    for _ in range(ROUNDS):
        spread: dict[str, float] = {}
        kept = 0.0
        for ref, value in rank.items():
            neighbours = shares.get(ref)
            if neighbours is None:
                kept += value
                continue
            for other, share in neighbours:
                spread[other] = spread.get(other, 0.0) + value * share
        begun = 1 - DAMPING + DAMPING * kept
        rank = {ref: DAMPING * value for ref, value in spread.items()}
        for ref, weight in start.items():
            rank[ref] = rank.get(ref, 0.0) + begun * weight
    highest = max(rank.values())
    return {ref: value / highest for ref, value in rank.items()}


def _shares(edges: Iterable[Link]) -> dict[str, list[tuple[str, float]]]:
    """Return of each node the nodes that a walk goes on to, with the share of the walks that do."""
    weights: dict[str, dict[str, float]] = {}
    for edge in edges:
        for one, other in ((edge.from_ref, edge.to_ref), (edge.to_ref, edge.from_ref)):
            if one != other:
                outgoing = weights.setdefault(one, {})
                outgoing[other] = outgoing.get(other, 0.0) + edge.weight
    shares: dict[str, list[tuple[str, float]]] = {}
    for ref, outgoing in weights.items():
        total = sum(outgoing.values())
        shares[ref] = [(other, weight / total) for other, weight in outgoing.items()]
    return shares
