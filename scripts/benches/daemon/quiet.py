"""Rows: what happens when nobody speaks any more. Silence is told in time, and what was said is summarized."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

from scripts.benches.daemon.observer import Observer, paced
from scripts.benches.daemon.processes import BenchError
from scripts.benches.daemon.stage import LATENCY, Scale, Stage
from scripts.benches.daemon.table import Line

FLIP_EARLIEST: Final = 4.0
FLIP_LATEST: Final = 4.6
STALEST: Final = 0.6
LOOK_EVERY: Final = 0.02
SUMMARY_WITHIN: Final = 1.0
MESSAGES: Final = 5


def silence(stage: Stage, scale: Scale) -> Iterator[Line]:
    """Two sessions at once; their conversation state is read every 20 ms."""
    with ExitStack() as stack:
        watched: dict[str, _Silence] = {}
        for model in (False, True):
            session = stage.new_session()
            observer = stack.enter_context(stage.observer(session))
            stack.enter_context(stage.daemon(session, model=model))
            spoke = [observer.push() for _ in paced(MESSAGES, 10.0)][-1]
            observer.see_number(observer.number)
            watched["with a model" if model else "without a model"] = _Silence(observer, spoke)
        until = time.monotonic() + scale.silence
        while time.monotonic() < until:
            for heard in watched.values():
                heard.look()
            time.sleep(LOOK_EVERY)
    for what, heard in watched.items():
        yield heard.line(what)


class _Silence:
    """What one session's conversation state says, and what is true; ``spoke`` is the last push's moment."""

    def __init__(self, observer: Observer, spoke: float) -> None:
        self._observer = observer
        self._spoke = spoke
        self._flipped: float | None = None
        self._stalest = 0.0

    def look(self) -> None:
        published = self._observer.conversation_state()
        elapsed = time.monotonic() - self._spoke
        self._stalest = max(self._stalest, abs(elapsed - published["time_since_last_message"]))
        if published["silence"] and self._flipped is None:
            self._flipped = elapsed

    def line(self, what: str) -> Line:
        if self._flipped is None:
            raise BenchError(f"{what}: silence was never told")
        reached = FLIP_EARLIEST <= self._flipped <= FLIP_LATEST and self._stalest <= STALEST
        values = {"flip_s": self._flipped, "stalest_s": self._stalest}
        return Line(what, f"{self._flipped:.2f} s, {self._stalest:.2f} s", reached, values=values)


def idle(stage: Stage, scale: Scale) -> Iterator[Line]:
    """Two sessions at once: seconds beyond the window and the model's own time until the summary is published."""
    window = scale.summary_window
    with ExitStack() as stack:
        waiting: list[tuple[str, Observer, float]] = []
        for model in (False, True):  # in the order in which they will be done
            session = stage.new_session()
            observer = stack.enter_context(stage.observer(session))
            stack.enter_context(stage.daemon(session, model=model, raw_buffer_time_window=window))
            began, *_ = [observer.push() for _ in paced(MESSAGES, 10.0)]
            due = began + window + (LATENCY["summary"] if model else 0.0)
            waiting.append((f"{'with' if model else 'without'} a model, window {window:g} s", observer, due))
        for what, observer, due in waiting:
            done = observer.see_state("there is a summary", lambda s: s["rolling_summary"]["message_count"] > 0)
            beyond = done - due
            yield Line(what, f"{beyond:.2f} s beyond", 0 <= beyond <= SUMMARY_WITHIN, values={"beyond_s": beyond})
