"""The domain history counts messages by domain in equal steps of time, and marks lasting changes of the topic."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from context_builder.domains import DOMAINS
from context_builder.session.conversation.topic import LASTING, Topic

MOST_STEPS: Final = 48
MOST_DOMAINS: Final = 6
MOST_MESSAGES: Final = 20_000
STEPS: Final = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
"""Seconds that a step may have."""


@dataclass(frozen=True, slots=True)
class DomainChart:
    """Holds ``shares[step][domain]``, each 0..1 of what was said in the step, and ``changes`` as parts of the width.

    ``begin`` and ``end`` are epoch seconds. A step in which nothing was tagged is all zeros.
    """

    begin: float
    end: float
    domains: tuple[str, ...]
    shares: tuple[tuple[float, ...], ...]
    changes: tuple[float, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "begin": self.begin,
            "end": self.end,
            "domains": self.domains,
            "shares": self.shares,
            "changes": self.changes,
        }

    def areas(self) -> list[tuple[str, list[tuple[float, float, float, float]]]]:
        """Return for each domain its rectangles: left, top, width and height, as parts of a square of 1."""
        width = 1 / max(1, len(self.shares))
        tops = [1.0] * len(self.shares)
        found = []
        for number, name in enumerate(self.domains):
            rectangles = []
            for step, shares in enumerate(self.shares):
                if height := shares[number]:
                    tops[step] -= height
                    rectangles.append((step * width, tops[step], width, height))
            found.append((name, rectangles))
        return found


class DomainHistory:
    """Notes messages with their domains. Of more than :data:`MOST_MESSAGES` the oldest are left out."""

    def __init__(self) -> None:
        self._noted: dict[int, tuple[float, tuple[str, ...], Mapping[str, float]]] = {}

    def note(self, message_id: int, at: float, domains: Sequence[str], confidence: Mapping[str, float]) -> bool:
        """Note a message, or what is newly known of it; return whether that changes anything."""
        noted = (at, tuple(one for one in domains if one in DOMAINS), confidence)
        if not math.isfinite(at) or self._noted.get(message_id) == noted:
            return False
        self._noted[message_id] = noted
        while len(self._noted) > MOST_MESSAGES:
            del self._noted[next(iter(self._noted))]
        return True

    def chart(self) -> DomainChart | None:
        """Return the chart; None as long as no message has a domain."""
        noted = list(self._noted.values())  # in one step: more may be noted meanwhile, in another thread
        told = sorted((one for one in noted if one[1]), key=lambda one: one[0])
        if not told:
            return None
        first, last = told[0][0], told[-1][0]
        step = next((one for one in STEPS if (last - first) / one < MOST_STEPS), (last - first) / MOST_STEPS + 1)
        begin = math.floor(first / step) * step
        count = int((last - begin) // step) + 1
        steps = [Counter[str]() for _ in range(count)]
        for at, domains, _ in told:
            steps[int((at - begin) // step)][domains[0]] += 1
        total = sum(steps, Counter[str]())
        names = tuple(name for name, _ in total.most_common(MOST_DOMAINS))
        shares = tuple(tuple(round(one[name] / (sum(one.values()) or 1), 4) for name in names) for one in steps)
        width = count * step
        changes = tuple(round((at - begin) / width, 4) for at in _changes(told))
        return DomainChart(begin, begin + width, names, shares, changes)


def _changes(told: Sequence[tuple[float, tuple[str, ...], Mapping[str, float]]]) -> list[float]:
    """Return when the topic changed for good, by the rules of the live side: a run of equal tags is an inference, and
    another one as often as it lasts so long that the topic may have changed."""
    topic = Topic()
    found: list[float] = []
    before: tuple[str, ...] | None = None
    run, inferred_at = 0, 0.0
    for at, domains, confidence in told:
        run = run + 1 if domains == before else 1
        before = domains
        if run > 2 and at - inferred_at < LASTING:
            continue
        inferred_at = at
        topic = topic.after(confidence or {name: 0.7 / (place + 1) for place, name in enumerate(domains)}, at)
        if topic.changed_at is not None and (not found or topic.changed_at != found[-1]):
            found.append(topic.changed_at)
    return found
