"""Rows: sessions whose worker dies, freezes or leaves, while another one runs."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from scripts.benches.daemon.processes import BenchError, Child
from scripts.benches.daemon.stage import Stage
from scripts.benches.daemon.table import Line, milliseconds, p50_p95
from scripts.benches.hosting.fleet_workers import empty, fleet_worker, owned_elsewhere, owners
from scripts.benches.hosting.load import Speakers
from scripts.benches.hosting.names import session_names

SESSIONS: Final = 200
ROUNDS: Final = 5
DEATH_GOALS: Final = (3.0, 5.0)
HANDOVER_GOAL: Final = 1.0
TALK: Final = 40.0
"""Messages a second over all sessions while a worker leaves."""

BEFORE: Final = 4.0
AFTER: Final = 6.0


def death(stage: Stage) -> Iterator[Line]:
    """Each round has new workers and new sessions; all sessions of the one are spoken in as it ends."""
    for how, what in ((signal.SIGKILL, "killed"), (signal.SIGSTOP, "frozen")):
        taken: list[float] = []
        for _ in range(ROUNDS):
            taken += _died(stage, how)
        p50, p95 = p50_p95(taken)
        said = f"{p50:.2f} / {p95:.2f} s (worst {max(taken):.2f} s)"
        reached = p50 <= DEATH_GOALS[0] and p95 <= DEATH_GOALS[1]
        values = {"p50_s": p50, "p95_s": p95, "worst_s": max(taken)}
        yield Line(f"{what}, {ROUNDS} times, {len(taken)} sessions", said, reached, values=values)


def _died(stage: Stage, how: signal.Signals) -> list[float]:
    with _two_workers(stage) as (names, speakers, ending):
        theirs = _of(stage, names, ending)
        time.sleep(random.uniform(0.5, 1.5))  # anywhere between two renewals
        os.kill(ending.pid, how)
        taken = [one.seconds for one in speakers.say_once(theirs)]
        owned_elsewhere(stage.redis_url, names, ending.pid)
        os.kill(ending.pid, signal.SIGKILL)
    return taken


def handover(stage: Stage) -> Iterator[Line]:
    """People talk all the time; what counts is what they say from the signal on until all sessions have moved."""
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
    p50, p95 = p50_p95(taken)
    said = f"{milliseconds(p50, p95)} (worst {milliseconds(max(taken))})"
    values = {"p50_s": p50, "p95_s": p95, "worst_s": max(taken)}
    yield Line(
        f"push → visible meanwhile, {ROUNDS} times, n={len(taken)}", said, max(taken) <= HANDOVER_GOAL, values=values
    )
    slowest = max(moved)
    said = f"{sorted(moved)[len(moved) // 2]:.2f} s (slowest {slowest:.2f} s)"
    yield Line(
        "until all are run elsewhere",
        said,
        slowest <= HANDOVER_GOAL,
        values={"median_s": sorted(moved)[len(moved) // 2], "worst_s": slowest},
    )


@contextmanager
def _two_workers(stage: Stage) -> Iterator[tuple[Sequence[str], Speakers, Child]]:
    """Sessions in which somebody has spoken, run by two workers, and the worker that runs more of them."""
    empty(stage)
    names = session_names(SESSIONS)
    with fleet_worker(stage) as first, fleet_worker(stage) as second, Speakers(stage.redis_url, names) as speakers:
        speakers.speak(100, 2 * SESSIONS / 100)
        run = list(owners(stage.redis_url, names).values())
        yield names, speakers, max((first, second), key=lambda worker: run.count(worker.pid))


def _of(stage: Stage, names: Sequence[str], worker: Child) -> list[str]:
    return [name for name, pid in owners(stage.redis_url, names).items() if pid == worker.pid]
