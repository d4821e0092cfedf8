"""A worker's process: its room for files and connections, its garbage collector, and how busy it is.

Python's collector looks now and then through all that lives, which takes half a second for 2,000 sessions. Here it
looks through what is new, and through the rest seldom.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any, Final, Self

import orjson
import structlog
from redis.asyncio import Redis

from context_builder import metrics
from context_builder.errors import StoreError
from context_builder.storage.redis_availability import translated

log = structlog.get_logger(__name__)


FEW_FILES: Final = 512
"""Open files; with fewer, connections to models and databases may find none left."""


def raise_open_files() -> int | None:
    """Raise the process's limit of open files as far as the system lets it, and return it; None where there is none."""
    if find_spec("resource") is None:
        return None
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return None if soft == resource.RLIM_INFINITY else soft


async def log_room(redis: Redis, server: str, files: int | None) -> None:
    """Log how many files this process may open and how many clients Redis serves; few files as a warning."""
    clients = None
    with suppress(StoreError):  # the worker logs that it is away
        async with translated():
            info: dict[str, Any] = await redis.info("clients")
        clients = info.get("maxclients")
    tell = log.warning if files is not None and files < FEW_FILES else log.info
    tell("fleet.room", server=server, open_files=files, redis_clients=clients)


ALLOCATIONS: Final = 20_000
"""Threshold of new objects at which Python looks through the youngest by itself."""

SET_ASIDE_SECONDS: Final = 1.0
"""Most seconds until new objects are set aside, where later collections do not look."""

NEW_OBJECTS: Final = 2_000
"""New objects above which they are set aside sooner: to look through those of a busy second takes 50 ms, in which no
session goes on."""

POLL_SECONDS: Final = 0.1

SHARE: Final = 0.01
"""Share of the time in which new objects may be looked through before they are set aside. Each look also goes through
all that is under way, and in a busy process finds nothing; what it would find waits for the look at everything."""

COLLECT_SECONDS: Final = 900.0
"""Seconds between two full collections, for objects that became garbage after they were set aside."""


async def collect_seldom() -> None:
    """Collect garbage in this process, for ever; afterwards it is collected as before."""
    with _thresholds():
        while True:
            gc.unfreeze()
            log.info("fleet.garbage_collected", objects=gc.collect())
            began = set_aside = look_again = time.perf_counter()
            while (now := time.perf_counter()) - began < COLLECT_SECONDS:
                if gc.get_count()[0] > NEW_OBJECTS or now - set_aside >= SET_ASIDE_SECONDS:
                    if now >= look_again:
                        look_again = now + _look() / SHARE
                    gc.freeze()
                    set_aside = now
                await asyncio.sleep(POLL_SECONDS)


def _look() -> float:
    """Look through what is new; return the processor seconds that it took."""
    began = time.thread_time()
    gc.collect(1)
    return time.thread_time() - began


@contextmanager
def _thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


LOOK: Final = 0.5
"""Seconds between two looks."""

LOOKS: Final = 10
"""Looks that are averaged, so that a wave of sessions that start does not count."""

MOST_LAG: Final = 0.25
"""Seconds that the event loop may be late on average."""

MOST_CPU: Final = 0.95
"""Share of a core that the event loop's thread may use."""

RELIEVED: Final = 0.8
"""Part of both limits below which an overloaded worker takes sessions again."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A worker's load: ``lag`` in seconds, ``cpu`` as a share of a core, and whether it is ``overloaded``."""

    lag: float = 0.0
    cpu: float = 0.0
    overloaded: bool = False

    @classmethod
    def read(cls, raw: bytes | str | None) -> Self:
        """Return what a worker published; for any other value, a worker without load."""
        try:
            told = orjson.loads(raw or b"")
            return cls(float(told["lag"]), float(told["cpu"]), told["overloaded"] is True)
        except (ValueError, TypeError, KeyError):
            return cls()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class WorkloadMeter:
    """Measures the event loop that :meth:`run` runs in; ``now`` is the latest result."""

    def __init__(self) -> None:
        self.now = Workload()
        self._looks: deque[tuple[float, float]] = deque(maxlen=LOOKS)

    async def run(self) -> None:
        """Look for ever."""
        while True:
            began, used = time.monotonic(), time.thread_time()
            await asyncio.sleep(LOOK)
            passed = time.monotonic() - began
            self.note(passed - LOOK, (time.thread_time() - used) / passed)

    def note(self, lag: float, cpu: float) -> None:
        """Take one look into account."""
        self._looks.append((max(0.0, lag), cpu))
        lags, shares = zip(*self._looks, strict=True)
        mean_lag, mean_cpu = sum(lags) / len(lags), sum(shares) / len(shares)
        limit = RELIEVED if self.now.overloaded else 1.0
        is_enough = len(self._looks) == LOOKS
        overloaded = is_enough and (mean_lag > limit * MOST_LAG or mean_cpu > limit * MOST_CPU)
        if overloaded != self.now.overloaded:
            tell = log.warning if overloaded else log.info
            tell("fleet.overloaded" if overloaded else "fleet.relieved", lag=round(mean_lag, 3), cpu=round(mean_cpu, 2))
        self.now = Workload(round(mean_lag, 3), round(mean_cpu, 2), overloaded)
        metrics.LOOP_LAG_SECONDS.set(mean_lag)
        metrics.OVERLOADED.set(overloaded)
