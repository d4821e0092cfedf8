"""Rows: many sessions in one process, whose host does for all of them what is periodic."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import psutil

from scripts.benches.daemon.processes import BenchError, Child
from scripts.benches.daemon.stage import Stage
from scripts.benches.daemon.table import Line, milliseconds, p50_p95
from scripts.benches.hosting.cost import Meter
from scripts.benches.hosting.fleet_workers import empty
from scripts.benches.hosting.load import Speakers, ages, connections
from scripts.benches.hosting.names import session_names

MEGABYTE: Final = 2**20
READY_PATIENCE: Final = 120.0
SETTLING: Final = 45.0
"""Seconds after which nothing is due in any session: domains are read half a minute after the last message."""

ROWS: Final = ("ready", "idle", "fresh", "memory", "visible")
WATCHED: Final = 50


@dataclass(frozen=True)
class Load:
    sessions: int
    alone: bool
    seconds: float
    rate: float


def one_process(stage: Stage, load: Load, rows: Sequence[str]) -> Iterator[tuple[str, Line]]:
    count = f"{load.sessions:,} sessions"
    empty(stage)
    names = session_names(load.sessions)
    with _worker(stage, load.sessions, load), Speakers(stage.redis_url, names, WATCHED) as speakers:
        speakers.speak(400, 2 * load.sessions / 400)  # every session gets a checkpoint with something in it
    with _worker(stage, load.sessions, load) as (process, taken):
        yield "ready", Line(count, f"{taken:.1f} s", taken <= 5.0, values={"s": taken})
        time.sleep(SETTLING)
        if {"idle", "fresh"} & {*rows}:
            cpu, oldest = _cpu_and_ages(process, stage, load)
            yield "idle", Line(count, f"{cpu:.2f}", cpu <= 0.25, values={"core": cpu})
            stale = sum(age > 1.0 for age in oldest)
            said = f"{stale} (oldest {max(oldest):.2f} s; {connections(stage.redis_url)} connections)"
            yield "fresh", Line(count, said, not stale, values={"stale": stale, "oldest_s": max(oldest)})
        if "memory" in rows:
            many = psutil.Process(process.pid).memory_full_info().uss
            with _worker(stage, 1, load, first=load.sessions) as (single, _):
                each = (many - psutil.Process(single.pid).memory_full_info().uss) / (load.sessions - 1) / MEGABYTE
            yield "memory", Line(count, f"{each:.3f} MB", each <= 0.12, values={"mb": each})
        if "visible" in rows:
            yield "visible", _spoken(stage, process, load)


@contextmanager
def _worker(stage: Stage, sessions: int, load: Load, *, first: int = 0) -> Iterator[tuple[Child, float]]:
    """A process with so many sessions, all ready, and the seconds they took for that."""
    arguments = (str(first), str(sessions), *(["--alone"] if load.alone else []))
    with Child("scripts.benches.hosting.worker", *arguments, within=stage.surroundings()) as process:
        opened = process.wait_for("bench.opened")
        try:
            yield process, process.wait_for("bench.ready", READY_PATIENCE) - opened
        except BenchError as error:
            raise BenchError(f"{error}; the process said last:\n{process.last_words}") from None


def _cpu_and_ages(process: Child, stage: Stage, load: Load) -> tuple[float, list[float]]:
    """The share of a core used while nobody speaks, and the oldest that each conversation state was."""
    names, meter, began = session_names(load.sessions), Meter(stage, process.pid), time.monotonic()
    oldest = [0.0] * load.sessions
    while time.monotonic() - began < load.seconds:
        oldest = [max(pair) for pair in zip(oldest, ages(stage.redis_url, names), strict=True)]
        time.sleep(0.7)
    return meter.cost().worker, oldest


def _spoken(stage: Stage, process: Child, load: Load) -> Line:
    names = session_names(load.sessions)
    watched = max(WATCHED, int(load.sessions * WATCHED / load.rate))
    with Speakers(stage.redis_url, names, watched, first_number=int(time.time())) as speakers:
        meter = Meter(stage, process.pid)
        taken = [one.seconds for one in speakers.speak(load.rate, load.seconds)]
        cpu = meter.cost().worker
    p50, p95 = p50_p95(taken)
    said = f"{milliseconds(p50, p95)} (worst {milliseconds(max(taken))}; {cpu:.2f} of a core)"
    what = f"{load.sessions:,} sessions, {len(taken)} samples"
    values = {"p50_s": p50, "p95_s": p95, "core": cpu, "mean_s": statistics.mean(taken)}
    return Line(what, said, p50 <= 0.004 and p95 <= 0.025, values=values)
