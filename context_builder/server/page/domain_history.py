"""The domain history counts messages by domain in columns of equal time, compresses pauses, and marks lasting changes
of the topic."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Final

from context_builder.domains import DOMAINS
from context_builder.session.conversation.domains import LASTING, Topic

MOST_COLUMNS: Final = 48
MOST_DOMAINS: Final = 6
MOST_MESSAGES: Final = 20_000
STEPS: Final = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
"""Seconds that a column may stand for; each is a multiple of the first."""

PAUSE: Final = 2
"""From this many steps on in which nobody spoke, one column stands for all."""


@dataclass(frozen=True, slots=True)
class Column:
    """The time from ``begin`` to ``end`` in epoch seconds, and the messages in it.

    ``shares`` has for each domain of the chart its part of them, 0 to 1. A ``pause`` stands for any time.
    """

    begin: float
    end: float
    messages: int
    shares: tuple[float, ...]
    pause: bool = False

    @property
    def minutes(self) -> str:
        """Return how long it is, in words."""
        seconds = self.end - self.begin
        for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
            if seconds >= size:
                return f"{seconds / size:.0f} {unit}"
        return f"{seconds:.0f} s"


@dataclass(frozen=True, slots=True)
class DomainChart:
    """The columns in order, the domains most talked about, and ``changes`` of topic as parts of the width."""

    domains: tuple[str, ...]
    columns: tuple[Column, ...]
    changes: tuple[float, ...]

    @property
    def begin(self) -> float:
        return self.columns[0].begin

    @property
    def end(self) -> float:
        return self.columns[-1].end

    @property
    def pauses(self) -> int:
        """Return how many pauses there were."""
        return sum(one.pause for one in self.columns)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Noted:
    at: float
    domains: tuple[str, ...]
    confidence: Mapping[str, float]


class DomainHistory:
    """Notes messages with their domains. Of more than :data:`MOST_MESSAGES` the oldest are left out."""

    def __init__(self) -> None:
        self._noted: dict[int, _Noted] = {}

    def note(self, message_id: int, at: float, domains: Sequence[str], confidence: Mapping[str, float]) -> bool:
        """Note a message, or what is newly known of it; return whether that changes anything."""
        noted = _Noted(at, tuple(one for one in domains if one in DOMAINS), confidence)
        if not math.isfinite(at) or self._noted.get(message_id) == noted:
            return False
        self._noted[message_id] = noted
        while len(self._noted) > MOST_MESSAGES:
            del self._noted[next(iter(self._noted))]
        return True

    def chart(self, since: float = -math.inf, until: float = math.inf) -> DomainChart | None:
        """Return the chart of what was said from ``since`` to ``until``; None where no message has a domain."""
        every = list(self._noted.values())  # in one step: more may be noted meanwhile, in another thread
        noted = [one for one in every if since <= one.at <= until]
        noted.sort(key=lambda one: one.at)
        total = Counter(one.domains[0] for one in noted if one.domains)
        if not total:
            return None
        step, talked_in = _steps(one.at for one in noted)
        names = tuple(name for name, _ in total.most_common(MOST_DOMAINS))
        messages = Counter(int(one.at // step) for one in noted)
        tagged = Counter((int(one.at // step), one.domains[0]) for one in noted if one.domains)

        def column(number: int) -> Column:
            of_each = [tagged[number, name] for name in total]
            whole = sum(of_each) or 1
            shares = tuple(round(tagged[number, name] / whole, 4) for name in names)
            return Column(float(number * step), float((number + 1) * step), messages[number], shares)

        columns = [column(talked_in[0])]
        for before, number in pairwise(talked_in):
            if number - before > PAUSE:
                ends = float((before + 1) * step), float(number * step)
                columns.append(Column(*ends, 0, (0.0,) * len(names), pause=True))
            else:
                columns += map(column, range(before + 1, number))
            columns.append(column(number))
        changes = tuple(_place(at, columns) for at in _changes([one for one in noted if one.domains]))
        return DomainChart(names, tuple(columns), changes)


def _steps(moments: Iterable[float]) -> tuple[int, list[int]]:
    """Return the shortest step with which there are few columns, and the numbers of those steps that have a moment."""
    finest = sorted({int(at // STEPS[0]) for at in moments})
    step = STEPS[0]
    for step in (*STEPS, *(STEPS[-1] * 2**power for power in range(1, 64))):
        talked_in = sorted({number * STEPS[0] // step for number in finest})
        gaps = (after - before for before, after in pairwise(talked_in))
        if 1 + sum(min(gap, 2) for gap in gaps) <= MOST_COLUMNS:
            break
    return step, talked_in


def _place(at: float, columns: Sequence[Column]) -> float:
    """Return where a moment is, as a part of the width."""
    for place, one in enumerate(columns):
        if at < one.end:
            within = max(0.0, at - one.begin) / (one.end - one.begin)
            return round((place + within) / len(columns), 4)
    return 1.0


def _changes(told: Sequence[_Noted]) -> list[float]:
    """Return when the topic changed for good, by the rules of the live side: a run of equal tags is an inference, and
    another one as often as it lasts so long that the topic may have changed."""
    topic = Topic()
    found: list[float] = []
    before: tuple[str, ...] | None = None
    run, inferred_at = 0, 0.0
    for one in told:
        run = run + 1 if one.domains == before else 1
        before = one.domains
        if run > 2 and one.at - inferred_at < LASTING:
            continue
        inferred_at = one.at
        guessed = {name: 0.7 / (place + 1) for place, name in enumerate(one.domains)}
        topic = topic.after(one.confidence or guessed, one.at)
        if topic.changed_at is not None and (not found or topic.changed_at != found[-1]):
            found.append(topic.changed_at)
    return found
