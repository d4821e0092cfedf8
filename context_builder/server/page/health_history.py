"""The health history notes the worst that each check found in a minute, for a day, in the memory of this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

KEPT: Final = 86_400.0
"""Seconds for which a look is kept."""

BARS: Final = 48
STEPS: Final = (60, 300, 900, 1800)
"""Seconds that a bar may stand for: the shortest with which all looks fit into :data:`BARS`."""

STATES: Final = ("good", "warn", "bad")
"""From the best to the worst."""


@dataclass(frozen=True, slots=True)
class Check:
    """Tells how something is: ``state`` is one of :data:`STATES`; ``advice`` what to do, a line each.

    ``sessions`` are those that it is about, where it is about some alone. ``measured``, in ``unit``, is what its
    history shows: the less, the better.
    """

    name: str
    state: str
    found: str
    advice: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    measured: float | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class HealthBar:
    """The worst that was found from ``begin`` to ``end`` in epoch seconds.

    ``height`` is the most that was measured, as a part of the most in any bar; ``place`` counts from the left. Without
    a ``unit``, nothing was measured.
    """

    place: int
    begin: float
    end: float
    state: str
    most: float
    unit: str
    height: float


@dataclass(frozen=True, slots=True)
class _Look:
    at: float
    state: str
    measured: float
    unit: str

    def and_then(self, later: _Look) -> _Look:
        """Return the worst of both, at the time of this one."""
        worst = max(self.state, later.state, key=STATES.index)
        return _Look(self.at, worst, max(self.measured, later.measured), later.unit or self.unit)


class HealthHistory:
    """Notes the looks of a day, by the name of the check."""

    def __init__(self) -> None:
        self._looks: dict[str, deque[_Look]] = {}

    def note(self, at: float, checks: Iterable[Check]) -> None:
        """Note what was found at an epoch second."""
        for check in checks:
            looks = self._looks.setdefault(check.name, deque())
            look = _Look(at, check.state, check.measured or 0.0, check.unit)
            if looks and looks[-1].at // STEPS[0] == at // STEPS[0]:
                look = looks.pop().and_then(look)
            looks.append(look)
            while looks[0].at < at - KEPT:
                looks.popleft()

    def bars(self, name: str, now: float) -> list[HealthBar]:
        """Return the bars of a check, the oldest first, without those in which nobody looked."""
        looks = self._looks.get(name, deque())
        if not looks:
            return []
        step = next((one for one in STEPS if now - looks[0].at < one * (BARS - 1)), STEPS[-1])
        highest = max(one.measured for one in looks) or 1.0
        return list(_bars(looks, step, int(now // step) - BARS + 1, highest))


def _bars(looks: Iterable[_Look], step: int, first: int, highest: float) -> Iterator[HealthBar]:
    found: dict[int, list[_Look]] = {}
    for one in looks:
        found.setdefault(int(one.at // step), []).append(one)
    for number, its in found.items():
        if number < first:
            continue
        worst, most = max((one.state for one in its), key=STATES.index), max(one.measured for one in its)
        begin, height = float(number * step), round(most / highest, 3)
        unit = next((one.unit for one in reversed(its) if one.unit), "")  # one that fails measures nothing
        yield HealthBar(number - first, begin, begin + step, worst, most, unit, height)
