"""Row: how many messages a second one worker takes in before they become visible late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scripts.benches.daemon.stage import Stage
from scripts.benches.daemon.table import Line, milliseconds, p50_p95
from scripts.benches.hosting.cost import Meter
from scripts.benches.hosting.fleet_workers import empty, fleet_worker
from scripts.benches.hosting.load import Speakers
from scripts.benches.hosting.names import session_names

SESSIONS: Final = 1_000
RATES: Final = (200, 300, 400, 600, 800, 1_000, 1_500)
WATCHED: Final = 50
P95: Final = 0.1
PATIENCE: Final = 60.0
"""Seconds in which a rate that was too high is made up for."""


def rate(stage: Stage, seconds: float) -> Iterator[Line]:
    """Each rate in turn, up to the first at which p95 is above 100 ms."""
    empty(stage)
    names = session_names(SESSIONS)
    with fleet_worker(stage) as worker, Speakers(stage.redis_url, names, WATCHED) as speakers:
        speakers.speak(100, 2 * SESSIONS / 100)
        highest = 0
        for each in RATES:
            meter = Meter(stage, worker.pid)
            first = speakers.speak_without_waiting(each, seconds)
            cost = meter.cost()
            all_seen = speakers.wait(PATIENCE)
            p50, p95 = p50_p95([one.seconds for one in speakers.seen_since(first)])
            is_sustained = all_seen and p95 <= P95
            highest = each if is_sustained else highest
            said = (
                f"{milliseconds(p50, p95)} ({cost.worker:.2f} of a core; analysis {cost.analysis:.2f}; "
                f"Redis {cost.redis:.2f})"
            )
            values = {"p50_s": p50, "p95_s": p95, "core": cost.worker, "analysis_core": cost.analysis}
            yield Line(f"{each:,}/s", said, values={**values, "rate": each, "redis_core": cost.redis})
            if not is_sustained:
                break
    said = f"{highest:,} messages/s"
    yield Line("highest rate with p95 under 100 ms", said, highest >= RATES[-1], values={"rate": highest})
