"""How many live sessions one process carries: ``./scripts/bench fleet [--sessions N] [--only ROW] [--alone]``.

A process with many sessions, a real append-only Redis and the load share the machine. With ``--alone`` each session
does by itself what a host does for all.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import psutil
from rich.console import Console

from context_builder.errors import ContextBuilderError
from scripts.benches.daemon.processes import BenchError, Child
from scripts.benches.daemon.stage import Stage, open_stage
from scripts.benches.daemon.table import Line, Published, Report, milliseconds, p50_p95
from scripts.benches.hosting.load import Speakers, ages, connections, prepare

MEGABYTE: Final = 2**20
READY_PATIENCE: Final = 120.0
SETTLING: Final = 45.0
"""Seconds after which nothing is due in any session: domains are read half a minute after the last message."""

ROWS: Final = {
    "ready": Published("sessions from checkpoint to ready", "–", "–", "5 s for 2,000"),
    "idle": Published("all idle, CPU of one core", "–", "–", "0.25 for 2,000"),
    "fresh": Published("conversation_state older than 1 s", "–", "–", "0"),
    "memory": Published("a further idle session, USS", "–", "–", "0.12 MB"),
    "visible": Published("push → visible at 200 messages/s over all, p50 / p95", "–", "–", "4 / 25 ms"),
    "busy": Published("push → visible at 1,500 messages/s over 1,000 sessions, p50 / p95", "–", "–", "p95 100 ms"),
}


@dataclass(frozen=True)
class Load:
    sessions: int
    alone: bool
    seconds: float
    rate: float


@contextmanager
def worker(stage: Stage, sessions: int, load: Load, *, first: int = 0) -> Iterator[tuple[Child, float]]:
    """A process with so many sessions, all ready, and the seconds they took for that."""
    arguments = (str(first), str(sessions), *(["--alone"] if load.alone else []))
    with Child("scripts.benches.hosting.worker", *arguments, within=stage.surroundings()) as process:
        opened = process.wait_for("bench.opened")
        try:
            yield process, process.wait_for("bench.ready", READY_PATIENCE) - opened
        except BenchError as error:
            raise BenchError(f"{error}; the process said last:\n{process.last_words}") from None


def first_run(stage: Stage, load: Load) -> None:
    """Let every session have a checkpoint with something in it."""
    with worker(stage, load.sessions, load):
        Speakers(stage.redis_url, load.sessions, 50).speak(400, 2 * load.sessions / 400, 60)


def cpu_and_ages(process: Child, stage: Stage, load: Load) -> tuple[float, list[float]]:
    """The share of a core used while nobody speaks, and the oldest that each conversation state was."""
    used = psutil.Process(process.pid)
    oldest = [0.0] * load.sessions
    before, began = sum(used.cpu_times()[:2]), time.monotonic()
    while time.monotonic() - began < load.seconds:
        oldest = [max(pair) for pair in zip(oldest, ages(stage.redis_url, load.sessions), strict=True)]
        time.sleep(0.7)
    return (sum(used.cpu_times()[:2]) - before) / (time.monotonic() - began), oldest


def measure(stage: Stage, load: Load, rows: Sequence[str]) -> Iterator[tuple[str, Line]]:
    prepare(stage.redis_url)
    count = f"{load.sessions:,} sessions"
    if {"ready", "idle", "fresh", "memory", "visible"} & {*rows}:
        first_run(stage, load)
        with worker(stage, load.sessions, load) as (process, taken):
            yield "ready", Line(count, f"{taken:.1f} s", taken <= 5.0, values={"s": taken})
            time.sleep(SETTLING)
            if {"idle", "fresh"} & {*rows}:
                cpu, oldest = cpu_and_ages(process, stage, load)
                yield "idle", Line(count, f"{cpu:.2f}", cpu <= 0.25, values={"core": cpu})
                stale = sum(age > 1.0 for age in oldest)
                said = f"{stale} (oldest {max(oldest):.2f} s; {connections(stage.redis_url)} connections)"
                yield "fresh", Line(count, said, not stale, values={"stale": stale, "oldest_s": max(oldest)})
            if "memory" in rows:
                many = psutil.Process(process.pid).memory_full_info().uss
                with worker(stage, 1, load, first=load.sessions) as (single, _):
                    each = (many - psutil.Process(single.pid).memory_full_info().uss) / (load.sessions - 1) / MEGABYTE
                yield "memory", Line(count, f"{each:.3f} MB", each <= 0.12, values={"mb": each})
            if "visible" in rows:
                yield "visible", spoken(stage, process, load.sessions, load.rate, load.seconds, (0.004, 0.025))
    if "busy" in rows:
        with worker(stage, 1000, load) as (process, _):
            yield "busy", spoken(stage, process, 1000, 1500, load.seconds, (0.1, 0.1))


def spoken(
    stage: Stage, process: Child, sessions: int, rate: float, seconds: float, limits: tuple[float, float]
) -> Line:
    used = psutil.Process(process.pid)
    speakers = Speakers(stage.redis_url, sessions, max(50, int(sessions * 50 / rate)), first_number=int(time.time()))
    before, began = sum(used.cpu_times()[:2]), time.monotonic()
    taken = speakers.speak(rate, seconds, 60)
    cpu = (sum(used.cpu_times()[:2]) - before) / (time.monotonic() - began)
    p50, p95 = p50_p95(taken)
    said = f"{milliseconds(p50, p95)} (worst {milliseconds(max(taken))}; {cpu:.2f} of a core)"
    what = f"{sessions:,} sessions, {len(taken)} samples"
    values = {"p50_s": p50, "p95_s": p95, "core": cpu, "mean_s": statistics.mean(taken)}
    return Line(what, said, p50 <= limits[0] and p95 <= limits[1], values=values)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=2000, metavar="N", help="live sessions (2000)")
    parser.add_argument("--seconds", type=float, default=15.0, metavar="S", help="length of each measurement (15)")
    parser.add_argument("--rate", type=float, default=200.0, metavar="R", help="messages a second over all (200)")
    parser.add_argument("--alone", action="store_true", help="without a host, as a comparison")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--only", choices=ROWS, action="append", metavar="ROW", help=f"one of {', '.join(ROWS)}")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what was started, as Ctrl-C does
    report = Report(ROWS)
    report.notes = [f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start."]
    progress, status = Console(stderr=True, highlight=False, soft_wrap=True), 0
    load = Load(options.sessions, options.alone, options.seconds, options.rate)
    try:
        with open_stage() as stage:
            for row, line in measure(stage, load, options.only or list(ROWS)):
                report.add(row, line)
                progress.print(f"{ROWS[row].what}, {line.what}: {line.measured}")
    except (BenchError, ContextBuilderError) as error:
        print(error, file=sys.stderr)
        status = 2
    except KeyboardInterrupt:
        print("stopped; everything that was started has ended", file=sys.stderr)
        status = 130
    print(report.as_json()) if options.json else report.print()
    return status or (1 if report.missed else 0)


if __name__ == "__main__":
    sys.exit(main())
