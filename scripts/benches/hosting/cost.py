"""What a second costs: processor time of workers, Redis and PostgreSQL, Redis commands and traffic."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import psutil
import redis

from scripts.benches.daemon.stage import Stage
from scripts.benches.hosting.others import used_by_postgres

CORES: Final = ("worker", "analysis", "redis", "postgres")
OWN: Final = {"info", "config|set", "config|get"}
"""Commands that only the bench sends while it measures."""


@dataclass(frozen=True)
class Cost:
    """What went on in a second, on average.

    ``worker`` and ``analysis`` (text analysed in processes of the worker's own), ``redis`` (its main thread) and
    ``postgres`` are cores; ``commands`` counts those that scripts call, too; ``bytes_in`` and ``bytes_out`` are
    Redis's network.
    """

    seconds: float
    worker: float
    analysis: float
    redis: float
    postgres: float
    commands: float
    bytes_in: float
    bytes_out: float
    by_command: Mapping[str, float] = field(repr=False)


@dataclass(frozen=True)
class _Reading:
    at: float
    worker: float
    analysis: float
    redis: float
    postgres: float
    commands: Counter[str]
    bytes_in: float
    bytes_out: float


class Meter:
    """Measures from now on what workers with these process ids, Redis and PostgreSQL use."""

    def __init__(self, stage: Stage, *pids: int) -> None:
        self._stage = stage
        self._processes = [psutil.Process(pid) for pid in pids]
        self._first = self._read()

    def cost(self) -> Cost:
        """Return what a second has cost since the meter was made."""
        first, now = self._first, self._read()
        seconds = now.at - first.at
        calls = now.commands - first.commands
        cores = {name: (getattr(now, name) - getattr(first, name)) / seconds for name in CORES}
        return Cost(
            seconds=seconds,
            commands=calls.total() / seconds,
            bytes_in=(now.bytes_in - first.bytes_in) / seconds,
            bytes_out=(now.bytes_out - first.bytes_out) / seconds,
            by_command={name: count / seconds for name, count in calls.most_common()},
            **cores,
        )

    def _read(self) -> _Reading:
        with redis.Redis.from_url(self._stage.redis_url) as client:
            info: Any = client.info("everything")
        calls = {key.removeprefix("cmdstat_"): of["calls"] for key, of in info.items() if key.startswith("cmdstat_")}
        return _Reading(
            time.monotonic(),
            sum(_cpu(process) for process in self._processes),
            sum(_cpu(child) for process in self._processes for child in process.children(recursive=True)),
            info["used_cpu_user_main_thread"] + info["used_cpu_sys_main_thread"],
            used_by_postgres(self._stage.home),
            Counter({name: count for name, count in calls.items() if name not in OWN}),
            info["total_net_input_bytes"],
            info["total_net_output_bytes"],
        )


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def cost_of(stage: Stage, seconds: float, *pids: int) -> Cost:
    """Return what a second costs, measured for so long."""
    meter = Meter(stage, *pids)
    time.sleep(seconds)
    return meter.cost()
