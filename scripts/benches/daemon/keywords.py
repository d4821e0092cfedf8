"""Row: push → keywords, beyond the time that the model itself takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any, Final

from scripts.benches.daemon.observer import Observer, paced
from scripts.benches.daemon.stage import LATENCY, Scale, Stage
from scripts.benches.daemon.table import Line, milliseconds

KEYWORDS_P50: Final = 0.050
SPOKEN_RATE: Final = 2.5
"""Messages a second, so that each is a call of its own."""

BURST: Final = 20


def keywords(stage: Stage, scale: Scale) -> Iterator[Line]:
    """After one message that loads the model's client, which is not counted."""
    for model in (True, False):
        label, latency = ("with a model", LATENCY["keywords"]) if model else ("without a model", 0.0)
        session = stage.new_session()
        with stage.observer(session) as observer, stage.daemon(session, model=model):
            observer.push()
            _understood(observer, 1)
            beyond = [_spoken(observer) - latency for _ in paced(scale.conversations, SPOKEN_RATE)]
            yield _line(f"one at a time, {label} (n={len(beyond)})", beyond)
            bursts = [_burst(observer) for _ in range(scale.bursts)]
            yield _line(f"bursts of {BURST}, {label}", [t - latency for burst in bursts for t in burst])


def _line(what: str, beyond: list[float]) -> Line:
    p50, slowest = statistics.median(beyond), max(beyond)
    measured = f"{milliseconds(p50)} (slowest {milliseconds(slowest)})"
    return Line(what, measured, p50 <= KEYWORDS_P50, values={"p50_s": p50, "max_s": slowest})


def _spoken(observer: Observer) -> float:
    pushed = observer.push()
    return _understood(observer, 1)[0] - pushed


def _burst(observer: Observer) -> list[float]:
    """Seconds from the push of the first to the keywords of each."""
    time.sleep(0.5)
    pushed = observer.push_many(BURST)
    return [moment - pushed for moment in _understood(observer, BURST)]


def _understood(observer: Observer, messages: int) -> list[float]:
    """The moments at which the newest messages had keywords, or were found to have none."""
    wanted = set(range(observer.number - messages + 1, observer.number + 1))
    moments: list[float] = []

    def all_are(state: dict[str, Any]) -> bool:
        read = {entry["message_number"] for entry in state["raw_recent_buffer"] if _is_read(entry)} & wanted
        moments.extend([time.monotonic()] * len(read))
        wanted.difference_update(read)
        return not wanted

    observer.see_state("keywords are there", all_are)
    return moments


def _is_read(entry: dict[str, Any]) -> bool:
    return bool(entry["analyst"]) or len(entry["text"]) < 10
