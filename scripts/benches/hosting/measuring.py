"""Measures the points of ``points.json``: a real worker, a real Redis and PostgreSQL, and who speaks.

Each point is the median of the :data:`KEPT` windows of time, of at most :data:`WINDOWS`, in which others used least of
the machine.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import psutil

from scripts.benches.daemon.processes import BenchError, Child
from scripts.benches.daemon.stage import Stage
from scripts.benches.daemon.table import p50_p95
from scripts.benches.hosting.asleep import put_to_sleep
from scripts.benches.hosting.cost import Cost, Meter, cost_of
from scripts.benches.hosting.demo_cost import demo_cost
from scripts.benches.hosting.discovery import MANY_KEYS, scanning
from scripts.benches.hosting.fleet_workers import empty, fleet_worker, owners
from scripts.benches.hosting.load import BENCH_EVENTS, Speakers
from scripts.benches.hosting.names import session_names
from scripts.benches.hosting.others import Others, wait_for_quiet
from scripts.benches.hosting.points import Point, Points

KEPT: Final = 3
WINDOWS: Final = 5
QUIET: Final = 0.3
"""Cores that others may use without a window being one too many."""

SETTLING: Final = 45.0
"""Seconds after which nothing is due in a session that nobody speaks in."""

IDLE: Final = (500, 1_000, 2_000)
SESSIONS: Final = 200
RATES: Final = (20, 40, 80)
"""Messages a second over all of these sessions: so few that a worker keeps up with them on a machine that it shares."""

BESIDE_RATE: Final = 40
ASLEEP: Final = 1_000

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Measuring:
    """Holds where and how points are measured.

    ``seconds`` is the length of a window, which waits ``patience`` seconds for a quiet machine; ``told`` is called with
    what comes out.
    """

    stage: Stage
    seconds: float
    patience: float
    told: Callable[[str], None]

    def window(self, figures: Callable[[], Figures]) -> Figures:
        """Return the figures, and what others used meanwhile."""
        wait_for_quiet(self.stage.home, QUIET, self.patience)
        others = Others(self.stage.home)
        return {**figures(), "others": others.cores()}

    def point(self, figures: Callable[[], Figures], **of: float) -> Point:
        """Return the median of what some windows give, with the parameters that they are ``of``."""
        taken: list[Figures] = []
        while len(taken) < WINDOWS and not is_enough(taken):
            taken.append(self.window(figures))
        return self.tell({**of, **quietest(taken)})

    def tell(self, point: Point) -> Point:
        self.told(str(dict(point)))
        return point

    def resting(self, worker: Child) -> Figures:
        return figures_of(cost_of(self.stage, self.seconds, worker.pid))

    def speaking(self, worker: Child, speakers: Speakers, rate: float) -> Figures:
        """Return what this worker costs while people speak, and how soon that is visible."""
        meter = Meter(self.stage, worker.pid)
        first = speakers.speak_without_waiting(rate, self.seconds)
        cost = meter.cost()
        if not speakers.wait(60.0):
            raise BenchError(f"at {rate:g} messages/s not all is visible a minute later")
        p50, p95 = p50_p95([one.seconds for one in speakers.seen_since(first)])
        return {**figures_of(cost), "p50": p50, "p95": p95}


def is_enough(taken: Sequence[Figures]) -> bool:
    return sum(one["others"] < QUIET for one in taken) >= KEPT


def quietest(taken: Sequence[Figures]) -> Figures:
    """Return the medians of the windows in which others used least."""
    kept = sorted(taken, key=lambda one: one["others"])[:KEPT]
    return {name: float(f"{statistics.median(one[name] for one in kept):.6g}") for name in kept[0]}


def figures_of(cost: Cost) -> dict[str, float]:
    names = ("worker", "analysis", "redis", "postgres", "commands", "bytes_in", "bytes_out")
    return {name: getattr(cost, name) for name in names}


def made(command: str, points: Points, part: str) -> Points:
    """Return how the points were made, this part of them now."""
    memory = psutil.virtual_memory().total / 2**30
    system, python = f"{platform.system()} {platform.machine()}", platform.python_version()
    return {
        **points.get("made", {}),
        part: {
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{os.cpu_count()} cores, {memory:.0f} GB, {system}, Python {python}",
            "command": command,
            "load_average": round(os.getloadavg()[1], 2),
        },
    }


def _idle(measuring: Measuring) -> Iterator[Point]:
    stage = measuring.stage
    with fleet_worker(stage) as worker:
        for sessions in (0, *IDLE):
            _grow(stage, sessions)
            yield measuring.point(partial(measuring.resting, worker), sessions=sessions)


def _talking(measuring: Measuring) -> Iterator[Point]:
    """The rates take turns, so that what the machine does besides is shared among them."""
    stage = measuring.stage
    windows: dict[int, list[Figures]] = {rate: [] for rate in RATES}
    with fleet_worker(stage) as worker, Speakers(stage.redis_url, session_names(SESSIONS)) as speakers:
        _speak_first(speakers, SESSIONS)
        for _ in range(WINDOWS):
            for rate, taken in windows.items():
                if not is_enough(taken):
                    taken.append(measuring.window(partial(measuring.speaking, worker, speakers, rate)))
                    measuring.tell({"rate": rate, **taken[-1]})
    for rate, taken in windows.items():
        yield {"sessions": SESSIONS, "rate": rate, **quietest(taken)}


def _beside(measuring: Measuring) -> Iterator[Point]:
    """A worker beside another one that runs all sessions; ``worker`` is its core, the rest is of both.

    It has room for one session, so that it takes none of those that docket delivers again when the machine is busy.
    """
    stage = measuring.stage
    with fleet_worker(stage), Speakers(stage.redis_url, session_names(SESSIONS)) as speakers:
        _speak_first(speakers, SESSIONS)
        with fleet_worker(stage, fleet_concurrency=1) as listening:
            speaking = partial(measuring.speaking, listening, speakers, BESIDE_RATE)
            yield measuring.point(speaking, sessions=SESSIONS, rate=BESIDE_RATE)


def _asleep(measuring: Measuring) -> Iterator[Point]:
    put_to_sleep(measuring.stage, ASLEEP)
    with fleet_worker(measuring.stage) as worker:
        time.sleep(5.0)
        yield measuring.point(partial(measuring.resting, worker), sessions=ASLEEP)


def _scan(measuring: Measuring) -> Iterator[Point]:
    cost, scan = scanning(measuring.stage, BENCH_EVENTS, MANY_KEYS, measuring.seconds)
    empty(measuring.stage)
    yield measuring.tell({"keys": MANY_KEYS, "scan_seconds": scan, **figures_of(cost)})


def _demo(measuring: Measuring) -> Iterator[Point]:
    yield measuring.tell(demo_cost(measuring.stage))


PARTS: Final[Mapping[str, Callable[[Measuring], Iterator[Point]]]] = {
    "idle": _idle,
    "talking": _talking,
    "beside": _beside,
    "asleep": _asleep,
    "scan": _scan,
    "demo": _demo,
}


def measure_part(part: str, measuring: Measuring) -> list[Point]:
    """Return the points of a part of :data:`PARTS`."""
    empty(measuring.stage)
    return list(PARTS[part](measuring))


def _grow(stage: Stage, sessions: int) -> None:
    """Have people speak in so many sessions that nobody runs yet, then nobody until all that follows is done."""
    run = owners(stage.redis_url, session_names(sessions)) if sessions else {}
    if names := [name for name in session_names(sessions) if name not in run]:
        with Speakers(stage.redis_url, names) as speakers:
            _speak_first(speakers, len(names))
        time.sleep(SETTLING)


def _speak_first(speakers: Speakers, sessions: int) -> None:
    speakers.speak(100, 2 * sessions / 100, 120.0)
