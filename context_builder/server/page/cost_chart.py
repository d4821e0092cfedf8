"""The cost chart shows a usage history as bars, dollars where any price is known, else tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from context_builder.session.conversation.usage_history import MOST_STEPS, STEPS, UsageHistory

_STEPS: Final = dict(zip(STEPS, ("minute", "5 minutes", "15 minutes", "hour", "6 hours", "day"), strict=True))

FEWEST_PLACES: Final = 12
"""Places that a chart has at least; the more time it shows, the more it has."""


@dataclass(frozen=True, slots=True)
class CostBar:
    """What was spent from ``begin`` to ``end`` in epoch seconds.

    ``height`` is a part of the highest bar's, 0 to 1; ``place`` counts from the left, where the newest bar is the last.
    """

    place: int
    begin: int
    end: int
    tokens: int
    dollars: float
    height: float

    @property
    def step(self) -> str:
        """Return how long it is, in words that follow "by"."""
        return _STEPS[self.end - self.begin]


def cost_bars(history: UsageHistory) -> list[CostBar]:
    """Return the bars of a history, the oldest first, without those of steps in which nothing was spent.

    They stand beside each other where they are too far apart to leave room for the time between them.
    """
    steps = list(history)
    in_dollars = any(one.dollars for one in steps)
    highest = max((one.dollars if in_dollars else one.tokens for one in steps), default=0)
    if highest <= 0:
        return []
    places = [(one.begin - steps[0].begin) // history.seconds for one in steps]
    if places[-1] >= MOST_STEPS:
        places = [*range(len(steps))]
    before = max(FEWEST_PLACES - 1 - places[-1], 0)
    return [
        CostBar(
            place=before + place,
            begin=one.begin,
            end=one.begin + history.seconds,
            tokens=one.tokens,
            dollars=one.dollars,
            height=round((one.dollars if in_dollars else one.tokens) / highest, 3),
        )
        for place, one in zip(places, steps, strict=True)
    ]


def first_instant(bars: Sequence[CostBar]) -> int | None:
    """Return the time at the left end of a chart in epoch seconds; None where time between its bars is left out."""
    ends = {bar.begin - bar.place * (bar.end - bar.begin) for bar in bars}
    return ends.pop() if len(ends) == 1 else None
