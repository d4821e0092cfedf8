"""Row: what it costs that nothing is lost or doubled, against the same daemon that takes no such care."""

from __future__ import annotations

import os
import signal
import statistics
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

import psutil

from scripts.benches.daemon.stage import Scale, Stage
from scripts.benches.daemon.table import Line
from scripts.benches.daemon.visibility import taken_in, warm_up

KEPT: Final = 0.7
PROGRAMS: Final = ("context_builder", "scripts.benches.daemon.unprotected")


class Intake(NamedTuple):
    """Of a backlog: messages a second, and the daemon's processor seconds a message."""

    rate: float
    cost: float


def protocol(stage: Stage, scale: Scale) -> Iterator[Line]:
    """The medians of as many backlogs each, taken in turns."""
    turns = [[_intake(stage, scale, program) for program in PROGRAMS] for _ in range(scale.backlogs)]
    (rate, cost), (bare_rate, bare_cost) = (
        Intake(*(statistics.median(figures) for figures in zip(*taken, strict=True)))
        for taken in zip(*turns, strict=True)
    )
    kept = rate / bare_rate
    yield Line(
        "a backlog while it runs",
        f"{kept:.0%}: {rate:,.0f} messages/s, {1e6 * cost:.0f} µs of the daemon each",
        kept >= KEPT,
        f"without: {bare_rate:,.0f} /s, {1e6 * bare_cost:.0f} µs",
        {"kept": kept, "messages_per_s": rate, "unprotected_messages_per_s": bare_rate, "cost_kept": bare_cost / cost},
    )


def _intake(stage: Stage, scale: Scale, program: str) -> Intake:
    """The daemon stands still while the backlog is pushed, so that pushing is no part of it."""
    session = stage.new_session()
    with stage.observer(session) as observer, stage.daemon(session, program=program) as daemon:
        warm_up(observer)
        os.kill(daemon.pid, signal.SIGSTOP)
        observer.push_many(scale.backlog)
        process = psutil.Process(daemon.pid)
        before = process.cpu_times()
        began = time.monotonic()
        os.kill(daemon.pid, signal.SIGCONT)
        seconds = taken_in(observer) - began
        after = process.cpu_times()
    spent = after.user + after.system - before.user - before.system
    return Intake(scale.backlog / seconds, spent / scale.backlog)
