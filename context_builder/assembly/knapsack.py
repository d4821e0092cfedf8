"""The most valuable things that fit, exactly."""

from __future__ import annotations

from collections.abc import Sequence


def best_subset(values: Sequence[float], costs: Sequence[int], room: int) -> list[int]:
    """Which items to take so that their values add up to the most within ``room``; their places, in order.

    Keeps the sets that no other set beats in both cost and value (Nemhauser and Ullmann, 1969): never more
    than ``room`` + 1 of them, and far fewer as a rule. Values are positive, costs not negative.
    """
    if sum(costs) <= room:
        return list(range(len(costs)))
    best: list[tuple[int, float, tuple[int, ...]]] = [(0, 0.0, ())]
    for place, (value, cost) in enumerate(zip(values, costs, strict=True)):
        grown = [(c + cost, v + value, (*taken, place)) for c, v, taken in best if c + cost <= room]
        best = _undominated(sorted((*best, *grown), key=lambda entry: (entry[0], -entry[1])))
    return list(best[-1][2])


def _undominated(by_cost: Sequence[tuple[int, float, tuple[int, ...]]]) -> list[tuple[int, float, tuple[int, ...]]]:
    kept: list[tuple[int, float, tuple[int, ...]]] = []
    for entry in by_cost:
        if not kept or entry[1] > kept[-1][1]:
            kept.append(entry)
    return kept
