"""The most valuable things that fit, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Chosen = tuple[int, float, Any]
"""A set: its cost, its value, and its last place with the set before, as a chain."""


def best_subset(values: Sequence[float], costs: Sequence[int], room: int) -> list[int]:
    """Which items to take so that their values add up to the most within ``room``; their places, in order.

    Keeps the sets that no other set beats in both cost and value (Nemhauser and Ullmann, 1969): never more
    than ``room`` + 1 of them, and far fewer as a rule. Values are positive, costs not negative.
    """
    if sum(costs) <= room:
        return list(range(len(costs)))
    best: list[Chosen] = [(0, 0.0, None)]
    for place, (value, cost) in enumerate(zip(values, costs, strict=True)):
        grown = [(c + cost, v + value, (place, chain)) for c, v, chain in best if c + cost <= room]
        best = _undominated(best, grown)
    places: list[int] = []
    chain = best[-1][2]
    while chain is not None:
        place, chain = chain
        places.append(place)
    return places[::-1]


def _undominated(these: Sequence[Chosen], those: Sequence[Chosen]) -> list[Chosen]:
    """Of both, each in ascending order of cost and of value, those that nothing cheaper is worth as much as."""
    kept: list[Chosen] = []
    top, at, end = -1.0, 0, len(these)
    for other in those:
        cost, value, _ = other
        while at < end and (these[at][0] < cost or (these[at][0] == cost and these[at][1] >= value)):
            if these[at][1] > top:
                kept.append(these[at])
                top = these[at][1]
            at += 1
        if value > top:
            kept.append(other)
            top = value
    kept.extend(one for one in these[at:] if one[1] > top)
    return kept
