"""Many sessions, in one process and in a fleet: ``./scripts/bench fleet [--sessions N] [--only ROW]``.

Workers, a real append-only Redis, PostgreSQL and the load share the machine. ``--simulate`` measures nothing: it tells
from points that were measured before what a session costs and what other sizes need. With ``--measure`` those points,
or some parts of them, are measured anew first (half an hour).
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, NamedTuple

import psutil

from scripts.benches.harness.report import BenchError, Line, Report, milliseconds, p50_p95, parser, run
from scripts.benches.harness.scale import FILE, PARTS, Shares, measure_points, report_sizes
from scripts.benches.harness.stage import MEGABYTE, Child, Stage, open_stage
from scripts.benches.harness.workers import (
    BENCH_EVENTS,
    EVENTS,
    MANY_KEYS,
    Cost,
    Meter,
    Others,
    Speakers,
    ages,
    cost_of,
    empty,
    fill,
    fleet_worker,
    owned_elsewhere,
    owners,
    put_to_sleep,
    scanning,
    session_names,
)

SETTLING: Final = 45.0
"""Seconds after which nothing is due in any session: domains are read half a minute after the last message."""

WATCHED: Final = 50


class Load(NamedTuple):
    sessions: int
    seconds: float
    rate: float


def timed(what: str, seconds: Sequence[float], goal: str, *, reached: bool) -> Line:
    p50, p95 = p50_p95(seconds)
    worst = max(seconds)
    said = f"{milliseconds(p50, p95)} (worst {milliseconds(worst)})"
    values = {"p50_s": p50, "p95_s": p95, "worst_s": worst}
    return Line(f"{what}, p50 / p95 of {len(seconds)}", said, goal, reached, values=values)


# One process, whose host does for all sessions what is periodic


def one_process(stage: Stage, load: Load) -> Iterator[Line]:
    names, of = session_names(load.sessions), f"{load.sessions:,} sessions"
    empty(stage)
    with _hosted(stage, load.sessions), Speakers(stage.redis_url, names, WATCHED) as speakers:
        speakers.speak(400, 2 * load.sessions / 400)  # every session gets a checkpoint with something in it
    with _hosted(stage, load.sessions) as (process, taken):
        yield Line(f"{of} from checkpoint to ready", f"{taken:.1f} s", "5 s", taken <= 5.0, values={"s": taken})
        time.sleep(SETTLING)
        cpu, oldest = _cpu_and_oldest(process, stage, load)
        yield Line(f"{of}, all idle: CPU of one core", f"{cpu:.2f}", "0.25", cpu <= 0.25, values={"core": cpu})
        stale = sum(age > 1.0 for age in oldest)
        said, values = f"{stale} (oldest {max(oldest):.2f} s)", {"stale": stale, "oldest_s": max(oldest)}
        yield Line(f"{of}: conversation_state older than 1 s", said, "0", not stale, values=values)
        many = psutil.Process(process.pid).memory_full_info().uss
        with _hosted(stage, 1, first=load.sessions) as (single, _):
            each = (many - psutil.Process(single.pid).memory_full_info().uss) / (load.sessions - 1) / MEGABYTE
        yield Line("a further idle session, USS", f"{each:.3f} MB", "0.12 MB", each <= 0.12, values={"mb": each})
        yield _spoken(stage, process, load)


@contextmanager
def _hosted(stage: Stage, sessions: int, *, first: int = 0) -> Iterator[tuple[Child, float]]:
    """A process with so many sessions, all ready, and the seconds they took for that."""
    with stage.child("scripts.benches.programs.hosted", str(first), str(sessions)) as process:
        opened = process.wait_for("bench.opened")
        yield process, process.wait_for("bench.ready", 120.0) - opened


def _cpu_and_oldest(process: Child, stage: Stage, load: Load) -> tuple[float, list[float]]:
    """The share of a core used while nobody speaks, and the oldest that each conversation state was."""
    names, meter, began = session_names(load.sessions), Meter(stage, process.pid), time.monotonic()
    oldest = [0.0] * load.sessions
    while time.monotonic() - began < load.seconds:
        oldest = [max(pair) for pair in zip(oldest, ages(stage.redis_url, names), strict=True)]
        time.sleep(0.7)
    return meter.cost()["worker"], oldest


def _spoken(stage: Stage, process: Child, load: Load) -> Line:
    names = session_names(load.sessions)
    watched = max(WATCHED, int(load.sessions * WATCHED / load.rate))
    with Speakers(stage.redis_url, names, watched, first_number=int(time.time())) as speakers:
        meter = Meter(stage, process.pid)
        taken = [one.seconds for one in speakers.speak(load.rate, load.seconds)]
        cpu = meter.cost()["worker"]
    p50, p95 = p50_p95(taken)
    what = f"push → visible at {load.rate:g} messages/s over {load.sessions:,} sessions ({cpu:.2f} of a core)"
    return timed(what, taken, "4 / 25 ms", reached=p50 <= 0.004 and p95 <= 0.025)


# How soon a session that nobody knew is found, and what looking for them costs

NEW_SESSIONS: Final = 100
PACE: Final = 4.7
"""New sessions a second: not in step with the scans, one of which comes each second."""

OTHER_KEYS: Final = 10_000


def discovery(stage: Stage, load: Load) -> Iterator[Line]:
    """First message of a session that nobody knows → visible."""
    del load
    for events, others, what in (
        (EVENTS, 0, "Redis reports pushes"),
        (BENCH_EVENTS, OTHER_KEYS, f"scans only, {OTHER_KEYS:,} other keys"),
    ):
        empty(stage, events)
        fill(stage.redis_url, others)
        names = session_names(1 + NEW_SESSIONS)
        with fleet_worker(stage, events=events == EVENTS), Speakers(stage.redis_url, names) as speakers:
            speakers.say_once(names[:1])  # has loaded what is loaded lazily
            taken = [one.seconds for one in speakers.speak(PACE, NEW_SESSIONS / PACE + 0.01)]
        yield timed(f"first message of an unknown session → visible, {what}", taken, "1 s", reached=max(taken) <= 1.0)


def scan(stage: Stage, load: Load) -> Iterator[Line]:
    """What a worker without sessions costs, and Redis with it."""
    for events, others, what in (
        (EVENTS, OTHER_KEYS, f"Redis reports pushes, {OTHER_KEYS:,} keys"),
        (BENCH_EVENTS, OTHER_KEYS, f"scans only, {OTHER_KEYS:,} keys"),
        (BENCH_EVENTS, MANY_KEYS, f"scans only, {MANY_KEYS:,} keys"),
    ):
        cost, part = scanning(stage, events, others, load.seconds)
        said = f"{_said(cost)}; SCAN {cost['scans']:.1f}/s of {1e6 * part:,.0f} µs"
        yield Line(f"an idle worker, {what}", said, values={**cost, "scan_s": part})
    empty(stage)


def _said(cost: Cost) -> str:
    return (
        f"worker {cost['worker']:.3f} of a core, analysis {cost['analysis']:.3f}, Redis {cost['redis']:.3f}, "
        f"{cost['commands']:,.0f} commands/s"
    )


# Sessions whose worker dies, freezes or leaves, while another one runs

MOVED: Final = 200
ROUNDS: Final = 5
BEFORE, AFTER = 4.0, 6.0
TALK: Final = 40.0
"""Messages a second over all sessions while a worker leaves."""


def death(stage: Stage, load: Load) -> Iterator[Line]:
    """Each round has new workers and new sessions; all sessions of the one are spoken in as it ends."""
    del load
    for how, what in ((signal.SIGKILL, "killed"), (signal.SIGSTOP, "frozen")):
        taken: list[float] = []
        for _ in range(ROUNDS):
            with _two_workers(stage) as (names, speakers, ending):
                theirs = _of(stage, names, ending)
                time.sleep(random.uniform(0.5, 1.5))  # anywhere between two renewals
                os.kill(ending.pid, how)
                taken += [one.seconds for one in speakers.say_once(theirs)]
                owned_elsewhere(stage.redis_url, names, ending.pid)
                os.kill(ending.pid, signal.SIGKILL)
        p50, p95 = p50_p95(taken)
        what = f"a worker {what} {ROUNDS} times → each of its sessions visible by another"
        yield timed(what, taken, "3 / 5 s", reached=p50 <= 3.0 and p95 <= 5.0)


def handover(stage: Stage, load: Load) -> Iterator[Line]:
    """People talk all the time; what counts is what they say from the signal on until all sessions have moved."""
    del load
    taken: list[float] = []
    moved: list[float] = []
    for _ in range(ROUNDS):
        with _two_workers(stage) as (names, speakers, ending), ThreadPoolExecutor(1) as pool:
            talking = pool.submit(speakers.speak, TALK, BEFORE + AFTER)
            time.sleep(BEFORE)
            theirs, began = _of(stage, names, ending), time.monotonic()
            os.kill(ending.pid, signal.SIGTERM)
            ended = owned_elsewhere(stage.redis_url, names, ending.pid)
            moved.append((ended - began) if theirs else 0.0)
            taken += [one.seconds for one in talking.result() if began - 0.1 <= one.pushed <= ended]
    if not taken:
        raise BenchError("nobody spoke during the handovers")
    what = f"push → visible during SIGTERM {ROUNDS} times, {TALK:g} messages/s over {MOVED} sessions"
    yield timed(what, taken, "1 s", reached=max(taken) <= 1.0)
    yield timed("SIGTERM → all sessions run elsewhere", moved, "1 s", reached=max(moved) <= 1.0)


@contextmanager
def _two_workers(stage: Stage) -> Iterator[tuple[Sequence[str], Speakers, Child]]:
    """Sessions in which somebody has spoken, run by two workers, and the worker that runs more of them."""
    empty(stage)
    names = session_names(MOVED)
    with fleet_worker(stage) as first, fleet_worker(stage) as second, Speakers(stage.redis_url, names) as speakers:
        speakers.speak(100, 2 * MOVED / 100)
        run = list(owners(stage.redis_url, names).values())
        yield names, speakers, max((first, second), key=lambda worker: run.count(worker.pid))


def _of(stage: Stage, names: Sequence[str], worker: Child) -> list[str]:
    return [name for name, pid in owners(stage.redis_url, names).items() if pid == worker.pid]


# How many messages a second one worker takes in before they become visible late

RATE_SESSIONS: Final = 1_000
RATES: Final = (200, 300, 400, 600, 800, 1_000, 1_500)


def rate(stage: Stage, load: Load) -> Iterator[Line]:
    """Each rate in turn, up to the first at which p95 is above 100 ms."""
    empty(stage)
    names = session_names(RATE_SESSIONS)
    with fleet_worker(stage) as worker, Speakers(stage.redis_url, names, WATCHED) as speakers:
        speakers.speak(100, 2 * RATE_SESSIONS / 100)
        highest = 0
        for each in RATES:
            meter = Meter(stage, worker.pid)
            first = speakers.speak_without_waiting(each, load.seconds)
            cost = meter.cost()
            all_seen = speakers.wait()
            p50, p95 = p50_p95([one.seconds for one in speakers.seen_since(first)])
            what = f"{RATE_SESSIONS:,} sessions of one worker, push → visible at {each:,}/s, p50 / p95"
            said = f"{milliseconds(p50, p95)}; {_said(cost)}"
            yield Line(what, said, values={**cost, "p50_s": p50, "p95_s": p95, "rate": each})
            if not all_seen or p95 > 0.1:
                break
            highest = each
    said, values = f"{highest:,} messages/s", {"rate": float(highest)}
    yield Line("highest rate with p95 under 100 ms", said, "1,500/s", highest >= RATES[-1], values=values)


# What sessions cost that sleep: the worker that keeps their conversation states fresh, and Redis


def asleep(stage: Stage, load: Load) -> Iterator[Line]:
    """A worker without sessions, and another one that keeps those fresh which a first one has put to sleep."""
    empty(stage)
    without, memory_without = _resting_worker(stage, load.seconds)
    names = put_to_sleep(stage, load.sessions)
    sleeping, memory = _resting_worker(stage, load.seconds)
    stale = sum(age > 2.0 for age in ages(stage.redis_url, names))
    more = (memory - memory_without) / MEGABYTE
    added = Cost({name: sleeping[name] - before for name, before in without.items()})
    said = f"{more:+.2f} MB; {_said(added)} (a worker alone: {_said(without)})"
    values = {**added, "mb": more, "stale": stale}
    # Two starts of one process differ by a megabyte.
    yield Line(f"{load.sessions:,} sleepers beside none", said, "0 MB", more <= 1.0 and not stale, values=values)


def _resting_worker(stage: Stage, seconds: float) -> tuple[Cost, int]:
    """What a new worker costs a second, and its own memory (USS, bytes)."""
    with fleet_worker(stage) as worker:
        time.sleep(5.0)
        return cost_of(stage, seconds, worker.pid), psutil.Process(worker.pid).memory_full_info().uss


ROWS: Final[Mapping[str, Callable[[Stage, Load], Iterator[Line]]]] = {
    one.__name__.replace("_", "-"): one for one in (one_process, discovery, death, handover, rate, asleep, scan)
}


def main() -> int:
    asked = parser(__doc__, ROWS)
    asked.add_argument("--sessions", type=int, default=2000, metavar="N", help="live sessions (2000)")
    asked.add_argument("--seconds", type=float, default=15.0, metavar="S", help="length of each measurement (15)")
    asked.add_argument("--rate", type=float, default=200.0, metavar="R", help="messages a second over all (200)")
    asked.add_argument("--simulate", action="store_true", help="what 1,000, 100,000 and 1,000,000 sessions need")
    asked.add_argument("--measure", nargs="*", choices=PARTS, metavar="PART", help=f"first, all or {', '.join(PARTS)}")
    asked.add_argument("--talking", type=float, default=0.1, metavar="S", help="share of sessions spoken in (0.1)")
    asked.add_argument("--idle", type=float, default=0.1, metavar="S", help="share of others that are awake (0.1)")
    options = asked.parse_args()
    load = Load(options.sessions, options.seconds, options.rate)

    def measure(report: Report) -> None:
        with open_stage() as stage:
            for row in options.only or ROWS:
                others = Others(stage.home)
                for line in ROWS[row](stage, load):
                    used, others = others.cores(), Others(stage.home)
                    report.add(replace(line, values={**line.values, "others_cores": used}))
                    report.notes.append(f"Others used {used:.2f} cores meanwhile: {line.what}")

    def simulate(report: Report) -> None:
        if options.measure is not None:
            command = f"./scripts/bench fleet {' '.join(sys.argv[1:])}"
            with open_stage() as stage:
                measure_points(stage, options.measure or PARTS, options.seconds, command)
        report_sizes(FILE, Shares(options.talking, options.idle), report)

    simulated = options.simulate or options.measure is not None
    title, what = ("What sizes need", simulate) if simulated else ("Many sessions, and fleets of workers", measure)
    return run(title, what, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
