"""A model of one worker: how much of a core it uses, and how soon what is said is visible.

The worker is a single server, its event loop, with a first-come queue. A session awake costs it a refresh every
:data:`TICK`; a message costs work before it is visible, and work afterwards that comes in lumps of exponential length
(readings, what is remembered, the log), which others wait for. What no queue explains, as round trips to Redis and
waking up, is a latency of its own, the same at any load. All of this is pure: points in, figures out.
"""

from __future__ import annotations

import heapq
import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

TICK: Final = 0.5
"""Seconds between two refreshes of a session (``POLL_INTERVAL``)."""

ROUND: Final = 0.05
"""Seconds between two rounds of a host, in each of which it refreshes the sessions that are due."""

BATCH: Final = 64
"""Sessions refreshed at once, for which the loop does nothing else."""

SEEN_WORK: Final = 0.4
"""Share of a message's work that is done before it is visible: reading, decoding and committing it."""

SHORTEST: Final = 4e-4
LONGEST: Final = 0.2
"""Seconds of a lump, between which it is looked for."""

MESSAGES: Final = 4_000
"""Messages of a simulated stretch of time."""

SEEDS: Final = 1


@dataclass(frozen=True, slots=True)
class Measured:
    """One worker with so many sessions awake and so many messages a second over all of them.

    ``core`` is the worker's processor time a second; ``p50`` and ``p95`` are seconds from push to visible, where
    anybody spoke.
    """

    sessions: int
    rate: float
    core: float
    p50: float = 0.0
    p95: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkerModel:
    """Holds what a worker costs: cores when it has nothing to do and for each session awake, seconds for a message;
    and the mean seconds of a lump of work after it was visible, and of what else passes before it is.
    """

    alone: float
    awake: float
    message: float
    lump: float = 0.0
    latency: float = 0.0

    def core(self, sessions: int, rate: float) -> float:
        """Return the share of a core that is used; above 1 there is no such worker."""
        return self.alone + self.awake * sessions + self.message * rate

    def highest_rate(self, sessions: int, core: float) -> float:
        """Return the messages a second at which that share of a core is used."""
        return max(0.0, (core - self.core(sessions, 0.0)) / self.message)


def calibrate(idle: Sequence[Measured], talking: Measured) -> WorkerModel:
    """Return the model that two or more idle points, by a straight line, and one with messages give."""
    awake, alone = statistics.linear_regression([one.sessions for one in idle], [one.core for one in idle])
    message = (talking.core - alone - awake * talking.sessions) / talking.rate
    model = WorkerModel(max(0.0, alone), awake, message)
    spread = talking.p95 - talking.p50
    lump = _root(lambda lump: _spread(replace(model, lump=lump), talking) - spread, SHORTEST, LONGEST)
    model = replace(model, lump=lump)
    p50, _ = waiting(model, talking.sessions, talking.rate)
    return replace(model, latency=max(0.0, talking.p50 - p50))


def waiting(model: WorkerModel, sessions: int, rate: float) -> tuple[float, float]:
    """Return p50 and p95 of push → visible in seconds, the median of some simulated stretches of time."""
    runs = [_quantiles(_simulate(model, sessions, rate, random.Random(seed))) for seed in range(SEEDS)]
    p50, p95 = (statistics.median(figures) for figures in zip(*runs, strict=True))
    return p50 + model.latency, p95 + model.latency


def _spread(model: WorkerModel, at: Measured) -> float:
    p50, p95 = waiting(model, at.sessions, at.rate)
    return p95 - p50


def _simulate(model: WorkerModel, sessions: int, rate: float, chance: random.Random) -> list[float]:
    """Return the seconds that each message waited, and was worked on, until it was visible."""
    seconds = MESSAGES / rate
    seen, after = model.message * SEEN_WORK, model.message * (1 - SEEN_WORK)
    # When it comes, whether it is a message that somebody waits for, and how long it takes.
    jobs: list[tuple[float, bool, float]] = [(turn / rate, True, seen) for turn in range(MESSAGES)]
    at = 0.0
    while model.lump and (at := at + chance.expovariate(rate * after / model.lump)) < seconds:
        jobs.append((at, False, chance.expovariate(1 / model.lump)))
    due, refresh = sessions * ROUND / TICK, model.awake * TICK
    for turn in range(int(seconds / ROUND)):
        left = due
        while left > 0:
            jobs.append((turn * ROUND, False, min(BATCH, left) * refresh))
            left -= BATCH
    heapq.heapify(jobs)
    free, waited = 0.0, []
    while jobs:
        comes, is_message, takes = heapq.heappop(jobs)
        free = max(free, comes) + takes
        if is_message:
            waited.append(free - comes)
    return waited


def _quantiles(waited: Sequence[float]) -> tuple[float, float]:
    return statistics.median(waited), statistics.quantiles(waited, n=20, method="inclusive")[-1]


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function that rises crosses zero, or the end that is nearer to it."""
    for _ in range(14):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if function(middle) > 0 else (middle, high)
    return math.sqrt(low * high)
