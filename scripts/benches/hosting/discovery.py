"""Rows: how soon a session that nobody knew is found, and what looking for them costs an idle Redis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import redis

from scripts.benches.daemon.stage import Stage
from scripts.benches.daemon.table import Line, milliseconds, p50_p95
from scripts.benches.hosting.cost import Cost, cost_of
from scripts.benches.hosting.fleet_workers import empty, fleet_worker
from scripts.benches.hosting.load import BENCH_EVENTS, EVENTS, Speakers
from scripts.benches.hosting.names import session_names

SAMPLES: Final = 100
PACE: Final = 4.7
"""New sessions a second: not in step with the scans, one of which comes each second."""

OTHER_KEYS: Final = 10_000
MANY_KEYS: Final = 1_000_000
GOAL: Final = 1.0


def discovery(stage: Stage) -> Iterator[Line]:
    """First message of a session that nobody knows → visible."""
    for events, others, what in (
        (EVENTS, 0, "Redis reports pushes"),
        (BENCH_EVENTS, OTHER_KEYS, f"scans only, {OTHER_KEYS:,} other keys"),
    ):
        empty(stage, events)
        _fill(stage.redis_url, others)
        names = session_names(1 + SAMPLES)
        with fleet_worker(stage, events=events == EVENTS), Speakers(stage.redis_url, names) as speakers:
            speakers.say_once(names[:1])  # has loaded what is loaded lazily
            taken = [one.seconds for one in speakers.speak(PACE, SAMPLES / PACE + 0.01)]
        p50, p95 = p50_p95(taken)
        values = {"p50_s": p50, "p95_s": p95, "worst_s": max(taken)}
        said = f"{milliseconds(p50, p95)} (worst {milliseconds(max(taken))})"
        yield Line(f"{what} (n={len(taken)})", said, max(taken) <= GOAL, values=values)


def scan(stage: Stage, seconds: float) -> Iterator[Line]:
    """What a worker without sessions costs, and Redis with it."""
    for events, others, what in (
        (EVENTS, OTHER_KEYS, f"Redis reports pushes, {OTHER_KEYS:,} keys"),
        (BENCH_EVENTS, OTHER_KEYS, f"scans only, {OTHER_KEYS:,} keys"),
        (BENCH_EVENTS, MANY_KEYS, f"scans only, {MANY_KEYS:,} keys"),
    ):
        cost, part = scanning(stage, events, others, seconds)
        said = (
            f"{cost.commands:.0f} commands/s, Redis {cost.redis:.3f} of a core; worker {cost.worker:.3f}; "
            f"SCAN {cost.by_command.get('scan', 0.0):.1f}/s of {1e6 * part:,.0f} µs"
        )
        values = {"commands_per_s": cost.commands, "redis_core": cost.redis, "worker_core": cost.worker}
        yield Line(what, said, values={**values, "scans_per_s": cost.by_command.get("scan", 0.0), "scan_s": part})
    empty(stage)


def scanning(stage: Stage, events: str, others: int, seconds: float) -> tuple[Cost, float]:
    """Return what a second costs, and how many seconds one SCAN takes Redis."""
    empty(stage, events)
    _fill(stage.redis_url, others)
    with fleet_worker(stage, events=events == EVENTS) as worker, redis.Redis.from_url(stage.redis_url) as client:
        client.config_resetstat()
        cost = cost_of(stage, seconds, worker.pid)
        scans = client.info("commandstats").get("cmdstat_scan", {})
    return cost, float(scans.get("usec_per_call", 0.0)) / 1e6


def _fill(redis_url: str, keys: int) -> None:
    """Put so many keys of no session there."""
    with redis.Redis.from_url(redis_url) as client, client.pipeline(transaction=False) as pipe:
        for number in range(keys):
            pipe.set(f"another:{number}", b"")
            if number % 10_000 == 0:
                pipe.execute()
        pipe.execute()
