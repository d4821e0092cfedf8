"""Rows: push → visible, in a young session and near message 10,000; and a backlog taken in durably."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

from scripts.benches.daemon.bare_loop import BUFFER_MAX
from scripts.benches.daemon.observer import LONG, Observer, long_text, paced
from scripts.benches.daemon.processes import BenchError, Child
from scripts.benches.daemon.stage import Scale, Stage
from scripts.benches.daemon.table import Line, milliseconds, p50_p95

LONG_BUFFERED: Final = 60
LONG_MESSAGES: Final = 40
LONG_RATE: Final = 4.0
"""A second."""

VISIBLE_LONG: Final = 0.5
"""Seconds: what the contract gives every message."""

VISIBLE_P50: Final = 0.002
VISIBLE_P95: Final = 0.008
BACKLOG_RATE: Final = 5_000
ENTRY_BYTES: Final = 450
"""About the length of one published message with its keywords and domains."""

CHECK_EVERY: Final = 10
"""So many messages apart, the whole state is read to see that the message is in the buffer."""


def visible(stage: Stage, scale: Scale) -> Iterator[Line]:
    """Messages come one at a time, faster than people speak but not so fast that they queue."""
    bare_young, bare_old = (_bare(stage, scale, buffered) for buffered in (10, BUFFER_MAX))
    for model in (False, True):
        label = f"{'with' if model else 'without'} a model"
        yield _visible_line(f"near message 10, {label}", _young(stage, scale, model=model), bare_young)
        until, beyond = _old(stage, scale, model=model)
        yield _visible_line(f"near message {scale.old_session:,}, {label}", until, bare_old)
        yield _visible_line(f"past a full buffer, summary under way, {label}", beyond, bare_old)
        yield _long_line(f"past a buffer full of messages of {LONG // 1000} KB, {label}", _long(stage, model=model))


def _visible_line(what: str, samples: list[float], bare: list[float]) -> Line:
    p50, p95 = p50_p95(samples)
    bare_p50, bare_p95 = p50_p95(bare)
    return Line(
        f"{what} (n={len(samples)})",
        milliseconds(p50, p95),
        p50 <= VISIBLE_P50 and p95 <= VISIBLE_P95,
        f"{milliseconds(bare_p50, bare_p95)} (×{p50 / bare_p50:.1f})",
        {"p50_s": p50, "p95_s": p95, "bare_p50_s": bare_p50, "bare_p95_s": bare_p95},
    )


def _long_line(what: str, samples: list[float]) -> Line:
    p50, p95 = p50_p95(samples)
    goal = VISIBLE_LONG
    return Line(f"{what} (n={len(samples)})", milliseconds(p50, p95), p95 <= goal, values={"p50_s": p50, "p95_s": p95})


def _long(stage: Stage, *, model: bool) -> list[float]:
    """Long messages after others of them that are more than are published, once a summary is under way."""
    session = stage.new_session()
    with stage.observer(session) as observer, stage.daemon(session, model=model):
        warm_up(observer)
        observer.text = long_text()
        for _ in paced(LONG_BUFFERED, LONG_RATE):
            observer.push()
            observer.see_number(observer.number)
        return _watched(observer, LONG_MESSAGES, LONG_RATE)


def _young(stage: Stage, scale: Scale, *, model: bool) -> list[float]:
    """Messages 2 to 21 of several sessions."""
    samples: list[float] = []
    for _ in range(scale.young_sessions):
        session = stage.new_session()
        with stage.observer(session) as observer, stage.daemon(session, model=model):
            warm_up(observer)
            samples += _watched(observer, scale.young_messages, scale.rate)
    return samples


def _old(stage: Stage, scale: Scale, *, model: bool) -> tuple[list[float], list[float]]:
    """The last messages until the session's buffer is full, and the next ones.

    The session is brought there without a model: most of it summarized, the rest in the buffer.
    """
    session = stage.new_session()
    with stage.observer(session) as observer:
        with stage.daemon(session, raw_buffer_time_window=1.0):
            observer.push_many(scale.old_session - BUFFER_MAX)
            observer.see_state("all is summarized", lambda s: _is_summarized(s, observer.number), timeout=120)
        with stage.daemon(session):
            observer.push_many(BUFFER_MAX - scale.old_messages - 1)
            observer.see_state("all is understood", lambda s: _is_understood(s, observer.number), timeout=120)
        with stage.daemon(session, model=model):
            warm_up(observer)
            until_full = _watched(observer, scale.old_messages, scale.rate)
            return until_full, _watched(observer, scale.old_messages // 3, scale.rate)


def warm_up(observer: Observer) -> None:
    """The first message of a process has the analysis loaded, which is not measured here."""
    observer.push()
    observer.see_state("the first message is understood", lambda s: _is_understood(s, observer.number))


def _bare(stage: Stage, scale: Scale, buffered: int) -> list[float]:
    session = stage.new_session()
    with stage.observer(session) as observer, _bare_loop(stage, session, buffered):
        return _watched(observer, scale.old_messages // 2, scale.rate, check=False)


def _bare_loop(stage: Stage, session: str, buffered: int) -> Child:
    arguments = (stage.redis_url, session, str(buffered), str(ENTRY_BYTES))
    loop = Child("scripts.benches.daemon.bare_loop", *arguments, within=stage.surroundings())
    loop.wait_for("session.ready")
    return loop


def _watched(observer: Observer, messages: int, rate: float, *, check: bool = True) -> list[float]:
    samples = []
    for turn in paced(messages, rate):
        pushed = observer.push()
        samples.append(observer.see_number(observer.number) - pushed)
        if check and turn % CHECK_EVERY == 0:
            _check_in_buffer(observer)
    return samples


def _check_in_buffer(observer: Observer) -> None:
    if observer.state()["raw_recent_buffer"][-1]["message_number"] != observer.number:
        raise BenchError(f"message {observer.number} is counted, but is not the newest in the buffer")


def _is_summarized(state: dict[str, Any], received: int) -> bool:
    return bool(state["received_messages"] == received and not state["raw_recent_buffer"])


def _is_understood(state: dict[str, Any], received: int) -> bool:
    return state["received_messages"] == received and all(entry["analyst"] for entry in state["raw_recent_buffer"])


# A backlog


def backlog(stage: Stage, scale: Scale) -> Iterator[Line]:
    """Until nothing is left in the input and every message is in buffer, pending list or summary."""
    bare = statistics.median(_bare_backlog(stage, scale) for _ in range(scale.backlogs))
    ways = (
        ("pushed before the daemon is ready", _pushed_before, False),
        ("pushed while it runs", _pushed_meanwhile, False),
        ("pushed while it runs, with a model", _pushed_meanwhile, True),
    )
    for what, measure, model in ways:
        rate = statistics.median(measure(stage, scale, model=model) for _ in range(scale.backlogs))
        yield Line(
            what,
            f"{rate:,.0f} messages/s",
            rate >= BACKLOG_RATE,
            f"{bare:,.0f} /s (×{rate / bare:.1f})",
            {"messages_per_s": rate, "bare_messages_per_s": bare},
        )


def _pushed_before(stage: Stage, scale: Scale, *, model: bool) -> float:
    session = stage.new_session()
    with stage.observer(session) as observer, ExitStack() as stack:
        observer.push_many(scale.backlog)
        daemon = stack.enter_context(stage.starting_daemon(session, model=model))
        done = taken_in(observer)
        return scale.backlog / (done - daemon.wait_for("session.ready"))


def _pushed_meanwhile(stage: Stage, scale: Scale, *, model: bool) -> float:
    session = stage.new_session()
    with stage.observer(session) as observer, stage.daemon(session, model=model):
        warm_up(observer)
        began = observer.push_many(scale.backlog)
        return scale.backlog / (taken_in(observer) - began)


def _bare_backlog(stage: Stage, scale: Scale) -> float:
    """A tenth of the backlog, with a buffer that is full from the start; visible, but nothing is durable here."""
    session, messages = stage.new_session(), scale.backlog // 10
    with stage.observer(session) as observer, _bare_loop(stage, session, BUFFER_MAX):
        began = observer.push_many(messages)
        return messages / (observer.see_number(messages) - began)


def taken_in(observer: Observer) -> float:
    """The monotonic moment at which nothing is left in the input; checks that every message is somewhere."""
    done = observer.see("the backlog is taken in", lambda c: c.get("received_messages") == observer.number, timeout=120)
    left, state = observer.redis.llen(observer.keys.input), observer.state()
    buffered, pending = len(state["raw_recent_buffer"]), state["pending_messages"]
    summarized = state["rolling_summary"]["message_count"]
    if left or buffered + pending + summarized != observer.number or state["highest_message_number"] != observer.number:
        counted = f"{left} in the input, {buffered} in the buffer, {pending} pending, {summarized} summarized"
        raise BenchError(f"of {observer.number} messages: {counted}")
    return done
