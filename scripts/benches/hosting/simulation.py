"""A model of one worker: how much of a core it uses, and how soon what is said is visible.

The worker is a single server, its event loop, with a first-come queue. A session awake costs it a refresh every
:data:`TICK`; a message costs work before it is visible, and work afterwards, which others wait for. What no queue
explains, as round trips to Redis and waking up, is a latency of its own and a tail of it, the same at any load. All of
this is pure: points in, figures out.
"""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Sequence
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

MESSAGES: Final = 4_000
"""Messages of a simulated stretch of time."""


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
    and the seconds of latency that no queue explains, at the median and beyond it at the 95th percentile.
    """

    alone: float
    awake: float
    message: float
    latency: float = 0.0
    tail: float = 0.0

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
    p50, p95 = waiting(model, talking.sessions, talking.rate)
    latency = max(0.0, talking.p50 - p50)
    return replace(model, latency=latency, tail=max(0.0, talking.p95 - p95 - latency))


def waiting(model: WorkerModel, sessions: int, rate: float) -> tuple[float, float]:
    """Return p50 and p95 of push → visible in seconds."""
    waited = _simulate(model, sessions, rate)
    p50, p95 = statistics.median(waited), statistics.quantiles(waited, n=20, method="inclusive")[-1]
    return p50 + model.latency, p95 + model.latency + model.tail


def _simulate(model: WorkerModel, sessions: int, rate: float) -> list[float]:
    """Return the seconds that each message waited, and was worked on, until it was visible."""
    seconds = MESSAGES / rate
    seen, after = model.message * SEEN_WORK, model.message * (1 - SEEN_WORK)
    # When it comes, whether it is a message that somebody waits for, and how long it takes.
    jobs: list[tuple[float, bool, float]] = []
    for turn in range(MESSAGES):
        jobs += ((turn / rate, True, seen), (turn / rate + seen, False, after))
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
