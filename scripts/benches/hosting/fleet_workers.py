"""Real workers of a fleet (``context-builder fleet``) on the bench's Redis."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import orjson
import redis

from context_builder.session.keys import Keys
from scripts.benches.daemon.processes import BenchError, Child
from scripts.benches.daemon.stage import Stage
from scripts.benches.hosting.load import EVENTS, prepare

READY_PATIENCE: Final = 60.0
LOOK_SECONDS: Final = 0.05
SCANS_BEGUN: Final = 2.0
"""Seconds after which a worker that is told nothing scans."""


@contextmanager
def fleet_worker(stage: Stage, *, events: bool = True, **settings: Any) -> Iterator[Child]:
    """One more worker, which takes sessions."""
    with Child("context_builder", "fleet", within=stage.surroundings(**settings)) as worker:
        worker.wait_for("fleet.ready", READY_PATIENCE)
        if events:
            worker.wait_for("fleet.hears_pushes", READY_PATIENCE)
        else:
            time.sleep(SCANS_BEGUN)
        try:
            yield worker
        except BenchError as error:
            raise BenchError(f"{error}; the worker said last:\n{worker.last_words}") from None


def empty(stage: Stage, events: str = EVENTS) -> None:
    """Forget all that is in the Redis, while nobody uses it, and have it tell of these events."""
    with redis.Redis.from_url(stage.redis_url) as client:
        client.flushall()
        client.config_resetstat()
    prepare(stage.redis_url, events)


def owners(redis_url: str, names: Sequence[str]) -> dict[str, int]:
    """Return the process that runs each session that somebody runs."""
    with redis.Redis.from_url(redis_url) as client:
        values = client.mget([Keys(name).owner for name in names])
    return {name: orjson.loads(raw)["pid"] for name, raw in zip(names, values, strict=True) if raw}


def owned_elsewhere(redis_url: str, names: Sequence[str], pid: int, patience: float = 30.0) -> float:
    """Return the monotonic moment at which each session is run by somebody else than the process."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        present = owners(redis_url, names)
        if len(present) == len(names) and pid not in present.values():
            return time.monotonic()
        time.sleep(LOOK_SECONDS)
    raise BenchError(f"not all of {len(names)} sessions are run elsewhere after {patience:g} s")
