"""The usage history counts tokens and dollars by minute, and by longer steps where there are more than a few dozen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

MOST_STEPS: Final = 48
STEPS: Final = (60, 300, 900, 3600, 21_600, 86_400)
"""Seconds that a step may have; each is a multiple of the one before."""


@dataclass(frozen=True, slots=True)
class StepUsage:
    """The tokens and US dollars spent in the step that begins at an epoch second."""

    begin: int
    tokens: int
    dollars: float


class UsageHistory:
    """Counts in the shortest step with which the whole time fits into :data:`MOST_STEPS`.

    Days that are more than so many before the newest are left out.
    """

    def __init__(self) -> None:
        self.seconds = STEPS[0]
        self._spent: dict[int, StepUsage] = {}

    def __iter__(self) -> Iterator[StepUsage]:
        """Yield the steps in which something was spent, the oldest first."""
        return iter(sorted(self._spent.values(), key=lambda one: one.begin))

    def add(self, at: float, tokens: int, dollars: float) -> None:
        """Count what was spent at an epoch second."""
        if tokens or dollars:
            self._count(StepUsage(int(at), tokens, dollars))
            self._fit()

    def absorb(self, other: UsageHistory) -> None:
        """Count what another history counted."""
        self._lengthen(max(self.seconds, other.seconds))
        for one in other:
            self._count(one)
        self._fit()

    def wire(self) -> dict[str, Any]:
        """Return the seconds of a step, and of each its beginning, tokens and dollars."""
        return {"seconds": self.seconds, "steps": [[one.begin, one.tokens, round(one.dollars, 9)] for one in self]}

    def restore(self, fields: Mapping[str, Any]) -> None:
        """Restore what :meth:`wire` gave; nothing where it is missing, as in the states of earlier releases."""
        self.seconds = fields.get("seconds", STEPS[0])
        self._spent = {begin: StepUsage(begin, *spent) for begin, *spent in fields.get("steps", ())}

    def _count(self, spent: StepUsage) -> None:
        begin = spent.begin - spent.begin % self.seconds
        known = self._spent.get(begin, StepUsage(begin, 0, 0.0))
        self._spent[begin] = StepUsage(begin, known.tokens + spent.tokens, known.dollars + spent.dollars)

    def _lengthen(self, seconds: int) -> None:
        spent, self.seconds, self._spent = list(self), seconds, {}
        for one in spent:
            self._count(one)

    def _fit(self) -> None:
        for seconds in STEPS:
            if seconds > self.seconds and self._span() > MOST_STEPS:
                self._lengthen(seconds)
        oldest = max(self._spent, default=0) - (MOST_STEPS - 1) * self.seconds
        self._spent = {begin: one for begin, one in self._spent.items() if begin >= oldest}

    def _span(self) -> int:
        return (max(self._spent) - min(self._spent)) // self.seconds + 1 if self._spent else 0
