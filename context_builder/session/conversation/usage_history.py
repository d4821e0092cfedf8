"""The usage history counts tokens and dollars by minute, and by longer steps where there are more than a few dozen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

MOST_STEPS: Final = 48
STEPS: Final = (60, 300, 900, 3600, 21_600, 86_400)
"""Seconds that a step may have; each is a multiple of the one before."""


_LAST: Final = 253_402_214_400
"""The last day that a calendar of four digits has, as an epoch second."""


@dataclass(frozen=True, slots=True)
class StepUsage:
    """The tokens and US dollars spent in the step that begins at an epoch second."""

    begin: int
    tokens: int
    dollars: float


class UsageHistory:
    """Counts in the shortest step with which the whole time fits into :data:`MOST_STEPS`.

    Of more days with something spent the newest are kept, however far apart: a wrong clock takes none of them away.
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

    def restore(self, fields: object) -> None:
        """Restore what :meth:`wire` gave; nothing where it has another form: another program may have written it."""
        written = fields if isinstance(fields, Mapping) else {}
        seconds, steps = written.get("seconds"), written.get("steps")
        self.seconds, self._spent = STEPS[0], {}
        if seconds in STEPS and isinstance(steps, list) and len(steps) <= MOST_STEPS and all(map(_is_step, steps)):
            self.seconds = int(seconds)
            for step in steps:
                self._count(StepUsage(*step))
            self._fit()

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
        self._spent = {begin: self._spent[begin] for begin in sorted(self._spent)[-MOST_STEPS:]}

    def _span(self) -> int:
        return (max(self._spent) - min(self._spent)) // self.seconds + 1 if self._spent else 0


def _is_step(written: object) -> bool:
    return (
        isinstance(written, list)
        and [type(field) for field in written[:2]] == [int, int]
        and len(written) == 3
        and isinstance(written[2], int | float)
        and math.isfinite(written[2])
        and min(written) >= 0
        and written[0] <= _LAST
    )
