"""Measures the points of ``points.json``: a real worker, a real Redis and PostgreSQL, and who speaks.

Each point is the median of the :data:`KEPT` windows of time, of at most :data:`WINDOWS`, in which others used least of
the machine.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import psutil

from scripts.benches.daemon.processes import BenchError, Child
from scripts.benches.daemon.stage import Stage
from scripts.benches.daemon.table import p50_p95
from scripts.benches.hosting.asleep import put_to_sleep
from scripts.benches.hosting.cost import Cost, Meter
from scripts.benches.hosting.demo_cost import demo_cost
from scripts.benches.hosting.discovery import MANY_KEYS, scanning
from scripts.benches.hosting.fleet_workers import empty, fleet_worker, owners
from scripts.benches.hosting.load import BENCH_EVENTS, Speakers
from scripts.benches.hosting.names import session_names
from scripts.benches.hosting.others import Others, wait_for_quiet
from scripts.benches.hosting.points import Points

KEPT: Final = 3
WINDOWS: Final = 6
QUIET: Final = 0.3
"""Cores that others may use without a window being one too many."""

QUIET_PATIENCE: Final = 30.0
SETTLING: Final = 45.0
"""Seconds after which nothing is due in a session that nobody speaks in."""

IDLE: Final = (500, 1_000, 2_000)
RATES: Final = (50, 100, 200, 300)
SESSIONS: Final = 1_000
WATCHED: Final = 100
BESIDE_RATE: Final = 200
ASLEEP: Final = (1_000, 2_000)

Told = Callable[[str], None]
Window = Callable[[], Mapping[str, float]]


def machine() -> str:
    """Return what the figures are of, in words."""
    memory = psutil.virtual_memory().total / 2**30
    system, python = f"{platform.system()} {platform.machine()}", platform.python_version()
    return f"{os.cpu_count()} cores, {memory:.0f} GB, {system}, Python {python}"


def measure_part(part: str, stage: Stage, seconds: float, told: Told) -> Any:
    """Return the points of a part of :data:`PARTS`; ``seconds`` is the length of a window."""
    return PARTS[part](stage, seconds, told)


def made(command: str, points: Points, part: str) -> Points:
    """Return how the points were made, this part of them now."""
    before = dict(points.get("made", {}))
    before[part] = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "command": command,
        "load_average": round(os.getloadavg()[1], 2),
    }
    return before


def _idle(stage: Stage, seconds: float, told: Told) -> list[Mapping[str, Any]]:
    empty(stage)
    points: list[Mapping[str, Any]] = []
    with fleet_worker(stage) as worker:
        for sessions in (0, *IDLE):
            _grow(stage, sessions)
            told(f"{sessions:,} idle sessions")
            window = _costs(stage, seconds, worker)
            points.append({"sessions": sessions, **_median(stage, [window] * WINDOWS)})
            told(str(points[-1]))
    return points


def _talking(stage: Stage, seconds: float, told: Told) -> list[Mapping[str, Any]]:
    """The rates take turns, so that what the machine does besides is shared among them."""
    empty(stage)
    names = session_names(SESSIONS)
    windows: dict[int, list[Mapping[str, float]]] = {rate: [] for rate in RATES}
    with fleet_worker(stage) as worker, Speakers(stage.redis_url, names, WATCHED) as speakers:
        _speak_first(speakers, SESSIONS)
        for _ in range(WINDOWS):
            for rate in RATES:
                if sum(one["others"] < QUIET for one in windows[rate]) >= KEPT:
                    continue
                speakers.speak(rate, 3.0)
                windows[rate].append(_taken(stage, partial(_spoken, stage, worker, speakers, rate, seconds)))
                told(f"{rate}/s: {windows[rate][-1]}")
    return [{"sessions": SESSIONS, "rate": rate, **_quietest(taken)} for rate, taken in windows.items()]


def _beside(stage: Stage, seconds: float, told: Told) -> list[Mapping[str, Any]]:
    """A worker beside another one that runs all sessions; ``worker`` is its core, the rest is of both."""
    empty(stage)
    names = session_names(SESSIONS)
    with fleet_worker(stage) as running, Speakers(stage.redis_url, names, WATCHED) as speakers:
        _speak_first(speakers, SESSIONS)
        with fleet_worker(stage) as listening:
            spoken = partial(_spoken, stage, listening, speakers, BESIDE_RATE, seconds)
            taken = _median(stage, [spoken] * WINDOWS)
            told(str(taken))
            if {*owners(stage.redis_url, names).values()} != {running.pid}:
                raise BenchError("sessions have moved to the worker that was to run none")
    return [{"sessions": SESSIONS, "rate": BESIDE_RATE, **taken}]


def _asleep(stage: Stage, seconds: float, told: Told) -> list[Mapping[str, Any]]:
    points: list[Mapping[str, Any]] = []
    for sessions in ASLEEP:
        empty(stage)
        put_to_sleep(stage, sessions)
        with fleet_worker(stage) as worker:
            time.sleep(5.0)
            points.append({"sessions": sessions, **_median(stage, [_costs(stage, seconds, worker)] * WINDOWS)})
            told(str(points[-1]))
    return points


def _scan(stage: Stage, seconds: float, told: Told) -> list[Mapping[str, Any]]:
    cost, part = scanning(stage, BENCH_EVENTS, MANY_KEYS, seconds)
    empty(stage)
    point = {"keys": MANY_KEYS, "scan_seconds": part, **_figures(cost)}
    told(str(point))
    return [point]


PARTS: Final[Mapping[str, Callable[[Stage, float, Told], Any]]] = {
    "idle": _idle,
    "talking": _talking,
    "beside": _beside,
    "asleep": _asleep,
    "scan": _scan,
    "demo": demo_cost,
}


def _grow(stage: Stage, sessions: int) -> None:
    """Have people speak in so many sessions that nobody runs yet, then nobody until all that follows is done."""
    run = owners(stage.redis_url, session_names(sessions)) if sessions else {}
    if names := [name for name in session_names(sessions) if name not in run]:
        with Speakers(stage.redis_url, names, WATCHED) as speakers:
            _speak_first(speakers, len(names))
        time.sleep(SETTLING)


def _speak_first(speakers: Speakers, sessions: int) -> None:
    speakers.speak(100, 2 * sessions / 100, 120.0)


def _costs(stage: Stage, seconds: float, worker: Child) -> Window:
    def window() -> Mapping[str, float]:
        meter = Meter(stage, worker.pid)
        time.sleep(seconds)
        return _figures(meter.cost())

    return window


def _spoken(stage: Stage, worker: Child, speakers: Speakers, rate: float, seconds: float) -> Mapping[str, float]:
    meter = Meter(stage, worker.pid)
    first = speakers.speak_without_waiting(rate, seconds)
    cost = meter.cost()
    if not speakers.wait(60.0):
        raise BenchError(f"at {rate:g} messages/s not all is visible a minute later")
    p50, p95 = p50_p95([one.seconds for one in speakers.seen_since(first)])
    return {**_figures(cost), "p50": p50, "p95": p95}


def _figures(cost: Cost) -> dict[str, float]:
    names = ("worker", "analysis", "redis", "postgres", "commands", "bytes_in", "bytes_out")
    return {name: getattr(cost, name) for name in names}


def _taken(stage: Stage, window: Window) -> Mapping[str, float]:
    """Return the window's figures, and what others used meanwhile."""
    wait_for_quiet(stage.home, QUIET, QUIET_PATIENCE)
    others = Others(stage.home)
    return {**window(), "others": others.cores()}


def _median(stage: Stage, windows: Sequence[Window]) -> dict[str, float]:
    taken: list[Mapping[str, float]] = []
    for window in windows:
        taken.append(_taken(stage, window))
        if sum(one["others"] < QUIET for one in taken) >= KEPT:
            break
    return _quietest(taken)


def _quietest(taken: Sequence[Mapping[str, float]]) -> dict[str, float]:
    kept = sorted(taken, key=lambda one: one["others"])[:KEPT]
    return {name: float(f"{statistics.median(one[name] for one in kept):.6g}") for name in kept[0]}
