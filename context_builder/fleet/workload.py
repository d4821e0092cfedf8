"""The workload tells how busy a worker's process is, and whether it is overloaded."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

import orjson
import structlog

from context_builder import metrics

LOOK: Final = 0.5
"""Seconds between two looks."""

LOOKS: Final = 10
"""Looks that are averaged, so that a wave of sessions that start does not count."""

MOST_LAG: Final = 0.25
"""Seconds that the event loop may be late on average."""

MOST_CPU: Final = 0.95
"""Share of a core that the event loop's thread may use."""

RELIEVED: Final = 0.8
"""Below this part of both limits an overloaded worker takes sessions again."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Workload:
    """A worker's load: ``lag`` in seconds, ``cpu`` as a share of a core, and whether it is ``overloaded``."""

    lag: float = 0.0
    cpu: float = 0.0
    overloaded: bool = False

    @classmethod
    def read(cls, raw: bytes | str | None) -> Self:
        """Return what a worker published; of what is none, a worker without load."""
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
