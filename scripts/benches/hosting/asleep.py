"""Row: what sessions cost that sleep: the worker that keeps their conversation states fresh, and Redis."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import psutil
import redis

from context_builder.fleet.sleepers import SLEEPERS
from scripts.benches.daemon.processes import BenchError
from scripts.benches.daemon.stage import Stage
from scripts.benches.daemon.table import Line
from scripts.benches.hosting.cost import Cost, cost_of
from scripts.benches.hosting.fleet_workers import empty, fleet_worker
from scripts.benches.hosting.load import Speakers, ages

QUICKLY: Final[dict[str, Any]] = {"session_sleep": 5.0, "raw_buffer_time_window": 2.0}
SLEEP_PATIENCE: Final = 600.0
SETTLED: Final = 5.0
MEGABYTE: Final = 2**20
MEMORY_GOAL: Final = 1.0
"""Megabytes that all sleepers together may seem to take: what two starts of one process differ by."""


def asleep(stage: Stage, sessions: int, seconds: float) -> Iterator[Line]:
    """A worker without sessions, and another one that keeps those fresh which a first one has put to sleep."""
    empty(stage)
    without, memory_without = _worker(stage, seconds)
    put_to_sleep(stage, sessions)
    sleeping, memory = _worker(stage, seconds)
    stale = sum(age > 2.0 for age in ages(stage.redis_url, sleepers(sessions)))
    more, core = (memory - memory_without) / MEGABYTE, sleeping.worker - without.worker
    of_redis, commands = sleeping.redis - without.redis, sleeping.commands - without.commands
    said = (
        f"{more:+.2f} MB, {core:+.4f} of a core; Redis {of_redis:+.4f} of a core, {commands:+,.0f} commands/s "
        f"(a worker alone: {without.worker:.3f}, {without.redis:.3f}, {without.commands:.0f}/s)"
    )
    values = {"mb": more, "core": core, "redis_core": of_redis, "commands_per_s": commands, "stale": stale}
    yield Line(f"{sessions:,} sleepers beside none", said, more <= MEMORY_GOAL and not stale, values=values)


def sleepers(count: int) -> list[str]:
    """Return names that no other row uses: the archive keeps summaries under them, which outlive an emptied Redis."""
    return [f"sleeper-{number}" for number in range(count)]


def put_to_sleep(stage: Stage, sessions: int) -> None:
    """Have people speak in so many sessions, and wait until these sleep and nobody runs them."""
    names = sleepers(sessions)
    with fleet_worker(stage, **QUICKLY), redis.Redis.from_url(stage.redis_url) as client:
        with Speakers(stage.redis_url, names, 50) as speakers:
            speakers.speak(150, 2 * sessions / 150)
        deadline = time.monotonic() + SLEEP_PATIENCE
        while (asleep := int(client.zcard(SLEEPERS))) < sessions:
            if time.monotonic() > deadline:
                raise BenchError(f"{asleep} of {sessions} sessions sleep after {SLEEP_PATIENCE:g} s")
            time.sleep(0.5)


def _worker(stage: Stage, seconds: float) -> tuple[Cost, int]:
    """Return what a new worker costs a second, and its own memory (USS, bytes)."""
    with fleet_worker(stage) as worker:
        time.sleep(SETTLED)
        cost = cost_of(stage, seconds, worker.pid)
        return cost, psutil.Process(worker.pid).memory_full_info().uss
