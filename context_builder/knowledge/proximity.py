"""Proximity measures how near nodes are to start nodes, by personalised PageRank in both directions. Pure."""

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
