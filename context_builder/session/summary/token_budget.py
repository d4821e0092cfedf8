"""The token budget of a summary grows with the talk. Over it whole points leave, those that are missed least first.

No sentence is ever shortened. What leaves the summary stays in the long-term memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from context_builder.analysis.analyst import PointKind
from context_builder.session.summary.point import Point, rendered

FIRST_PART: Final = 1800.0
"""Seconds of talk for which a summary has no more than its first budget."""

MOST_GROWTH: Final = 2
"""Times its first budget that a summary may have at most, however long the talk is or a session slept."""


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """Tokens that a summary may have: ``tokens`` for half an hour of talk, then ``an_hour`` more for each hour."""

    tokens: int
    an_hour: int = 0

    def after(self, talk: float) -> int:
        """Return the tokens after so many seconds from the first summarized message to the last."""
        grown = self.tokens + int(self.an_hour * max(0.0, talk - FIRST_PART) / 3600)
        return min(grown, MOST_GROWTH * self.tokens)


_LEAVES: Final[Mapping[PointKind, int]] = {
    PointKind.CLAIM: 0,
    PointKind.CONSILIENCE: 0,
    PointKind.PROPOSAL: 1,
    PointKind.DISAGREEMENT: 2,
    PointKind.QUESTION: 3,
    PointKind.ACTION: 3,
    PointKind.DECISION: 3,
}
"""The order in which kinds leave; within it, the oldest points leave first."""


def is_binding(kind: PointKind) -> bool:
    """Return whether points of the kind leave the summary last: decisions, actions and open questions."""
    return _LEAVES[kind] == _LEAVES[PointKind.DECISION]


def cost_of(point: Point, count: Callable[[str], int]) -> int:
    """Return the tokens of the point's line, as ``count`` counts them."""
    return count(f"- {point.render()}\n")


def fit(points: Sequence[Point], budget: int, count: Callable[[str], int]) -> list[Point]:
    """Return the points whose text fits ``budget``, in their order.

    The text is counted once for all that leave, and again only where the lines' tokens did not add up to the whole's.
    """
    kept = dict(enumerate(points))
    leaving = iter(sorted(kept, key=lambda place: (_LEAVES[points[place].kind], place)))
    while kept and (excess := count(rendered([*kept.values()])) - budget) > 0:
        while kept and excess > 0:
            excess -= cost_of(kept.pop(next(leaving)), count)
    return [*kept.values()]


def with_dates_that_fit(points: Sequence[Point], budget: int, count: Callable[[str], int]) -> str:
    """Return the text of points that fit ``budget``, with dates where these fit as well: no point leaves for a date.

    The order in which points leave is that in which they lose their dates.
    """
    leaving = sorted((point for point in points if point.dates), key=lambda point: _LEAVES[point.kind])
    while leaving and count(rendered(points, {point.id for point in leaving})) > budget:
        leaving.pop(0)
    return rendered(points, {point.id for point in leaving})
