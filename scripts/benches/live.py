"""How quick and how small the live side is: ``./scripts/bench live [--quick] [--json] [--only ROW]``.

Every row is measured on the real daemon, a process of its own, with a real append-only Redis and a real PostgreSQL in
a temporary home, once without a model and where it matters once with a local server that answers keywords, domains and
summaries after 150, 400 and 1500 ms. Nothing else should run on the machine meanwhile. Takes some minutes; ``--quick``
about one, with fewer samples. The bare loop pops and writes a state of the same size, without checkpoint, fence,
acknowledgement or analysis.
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

import psutil

from context_builder.assembly.turn import DEFAULT_TENANT
from context_builder.engines.embeddings import MODEL, EmbeddingEngine
from context_builder.memory.engine_embedder import EngineEmbedder
from context_builder.memory.memory import MemoryFilter, MemoryQuery
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.wiring.embedded import embedded_database
from scripts.benches.harness.report import NONE, BenchError, Line, Report, milliseconds, p50_p95, parser, run
from scripts.benches.harness.stage import (
    LATENCY,
    MEGABYTE,
    PATIENCE,
    Child,
    Observer,
    Stage,
    State,
    demo_talk,
    open_stage,
    paced,
)

BUFFER_MAX: Final = 1000
MODELS: Final = {False: "without a model", True: "with a model"}
ENTRY_BYTES: Final = 450
"""About the length of one published message with its keywords and domains."""

CHECK_EVERY: Final = 10
"""So many messages apart, the whole state is read to see that the message is in the buffer."""

LONGEST_WAIT: Final = 120.0


@dataclass(frozen=True)
class Scale:
    """How much is measured; the defaults are the full benchmark.

    ``summary_window`` stands in for the 120 s of ``RAW_BUFFER_TIME_WINDOW``.
    """

    young_sessions: int = 8
    old_session: int = 10_000
    old_messages: int = 300
    rate: float = 30.0
    conversations: int = 40
    bursts: int = 5
    backlogs: int = 3
    starts: int = 5
    silence: float = 10.0
    summary_window: float = 5.0


QUICK: Final = Scale(1, 2_500, 60, 50.0, 6, bursts=1, backlogs=1, starts=1, silence=5.0, summary_window=3.0)
YOUNG_MESSAGES: Final = 20
BACKLOG: Final = 10_000


# push → visible


def visible(stage: Stage, scale: Scale) -> Iterator[Line]:
    """Messages come one at a time, faster than people speak but not so fast that they queue."""
    bare_young, bare_old = (_bare(stage, scale, buffered) for buffered in (10, BUFFER_MAX))
    for model, label in MODELS.items():
        yield _visible_line(f"near message 10, {label}", _young(stage, scale, model=model), bare_young)
        until, beyond = _old(stage, scale, model=model)
        yield _visible_line(f"near message {scale.old_session:,}, {label}", until, bare_old)
        yield _visible_line(f"past a full buffer, summary under way, {label}", beyond, bare_old)


def _visible_line(what: str, samples: list[float], bare: list[float]) -> Line:
    (p50, p95), (bare_p50, bare_p95) = p50_p95(samples), p50_p95(bare)
    return Line(
        f"push → visible {what}, p50 / p95 (n={len(samples)})",
        milliseconds(p50, p95),
        "2 / 8 ms",
        p50 <= 0.002 and p95 <= 0.008,
        f"bare loop {milliseconds(bare_p50, bare_p95)} (×{p50 / bare_p50:.1f})",
        {"p50_s": p50, "p95_s": p95, "bare_p50_s": bare_p50, "bare_p95_s": bare_p95},
    )


def _young(stage: Stage, scale: Scale, *, model: bool) -> list[float]:
    """Messages 2 to 21 of several sessions."""
    samples: list[float] = []
    for _ in range(scale.young_sessions):
        session = stage.new_session()
        with stage.observer(session) as observer, stage.daemon(session, model=model):
            warm_up(observer)
            samples += _watched(observer, YOUNG_MESSAGES, scale.rate)
    return samples


def _old(stage: Stage, scale: Scale, *, model: bool) -> tuple[list[float], list[float]]:
    """The last messages until the session's buffer is full, and the next ones.

    The session is brought there without a model: most of it summarized, the rest in the buffer.
    """
    session = stage.new_session()
    with stage.observer(session) as observer:
        with stage.daemon(session, raw_buffer_time_window=1.0):
            observer.push(scale.old_session - BUFFER_MAX)
            observer.see_state("all is summarized", lambda s: _is_summarized(s, observer.number), timeout=LONGEST_WAIT)
        with stage.daemon(session):
            observer.push(BUFFER_MAX - scale.old_messages - 1)
            observer.see_state("all is understood", lambda s: _is_understood(s, observer.number), timeout=LONGEST_WAIT)
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
    loop = stage.child("scripts.benches.programs.bare_loop", *arguments)
    loop.wait_for("session.ready")
    return loop


def _watched(observer: Observer, messages: int, rate: float, *, check: bool = True) -> list[float]:
    samples = []
    for turn in paced(messages, rate):
        pushed = observer.push()
        samples.append(observer.see_newest() - pushed)
        newest = observer.state()["raw_recent_buffer"][-1:] if check and turn % CHECK_EVERY == 0 else []
        if any(entry["message_number"] != observer.number for entry in newest):
            raise BenchError(f"message {observer.number} is counted, but is not the newest in the buffer")
    return samples


def _is_summarized(state: State, received: int) -> bool:
    return bool(state["received_messages"] == received and not state["raw_recent_buffer"])


def _is_understood(state: State, received: int) -> bool:
    return state["received_messages"] == received and all(entry["analyst"] for entry in state["raw_recent_buffer"])


# push → keywords, beyond the time that the model itself takes

SPOKEN_RATE: Final = 2.5
"""Messages a second, so that each is a call of its own."""

BURST: Final = 20


def keywords(stage: Stage, scale: Scale) -> Iterator[Line]:
    """After one message that loads the model's client, which is not counted."""
    for model in (True, False):
        latency = LATENCY["keywords"] if model else 0.0
        session = stage.new_session()
        with stage.observer(session) as observer, stage.daemon(session, model=model):
            _until_understood(observer, 1)
            spoken = [_until_understood(observer, 1)[0] - latency for _ in paced(scale.conversations, SPOKEN_RATE)]
            yield _keywords_line(f"one at a time, {MODELS[model]} (n={len(spoken)})", spoken)
            bursts = []
            for _ in range(scale.bursts):
                time.sleep(0.5)
                bursts += [seconds - latency for seconds in _until_understood(observer, BURST)]
            yield _keywords_line(f"bursts of {BURST}, {MODELS[model]}", bursts)


def _keywords_line(what: str, beyond: list[float]) -> Line:
    p50, slowest = statistics.median(beyond), max(beyond)
    measured = f"{milliseconds(p50)} (slowest {milliseconds(slowest)})"
    values = {"p50_s": p50, "max_s": slowest}
    return Line(
        f"push → keywords beyond the model's latency, p50, {what}", measured, "50 ms", p50 <= 0.050, values=values
    )


def _until_understood(observer: Observer, messages: int) -> list[float]:
    """Push so many; return the seconds until each had keywords, or was found to have none."""
    pushed = observer.push(messages)
    wanted = set(range(observer.number - messages + 1, observer.number + 1))
    taken: list[float] = []

    def all_are(state: State) -> bool:
        entries = (entry for entry in state["raw_recent_buffer"] if entry["analyst"] or len(entry["text"]) < 10)
        read = {entry["message_number"] for entry in entries} & wanted
        taken.extend([time.monotonic() - pushed] * len(read))
        wanted.difference_update(read)
        return not wanted

    observer.see_state("keywords are there", all_are)
    return taken


# push → found in the long-term memory, long before anything is summarized

BY_WORDS: Final = "full_text"
BY_MEANING: Final = "vector"
FOUND_WITHIN: Final = {BY_WORDS: 1.0, BY_MEANING: 5.0}
"""Seconds, of 95 messages in 100."""

CROWD_RATE: Final = 200.0
CROWD_SAMPLE: Final = 50
"""Messages a second of a crowd; of so many of them one is looked for."""

LOOK_EVERY: Final = 0.02
MANY: Final = 100


def findable(stage: Stage, scale: Scale) -> Iterator[Line]:
    """The embedded engine embeds beside it, on the same cores."""
    with _embedding_engine(stage):
        found = asyncio.run(_found(stage, scale.conversations, 2.0, sample=1, by=(BY_WORDS, BY_MEANING)))
        yield _found_line("by words, one session", BY_WORDS, found)
        yield _found_line("by meaning, one session", BY_MEANING, found)
        crowd = asyncio.run(_found(stage, scale.conversations, CROWD_RATE, sample=CROWD_SAMPLE, by=(BY_WORDS,)))
        yield _found_line(f"by words, {CROWD_RATE:.0f} messages/s", BY_WORDS, crowd)


def _found_line(what: str, origin: str, found: dict[str, list[float]]) -> Line:
    p50, p95 = p50_p95(found[origin])
    values, limit = {"p50_s": p50, "p95_s": p95}, FOUND_WITHIN[origin]
    what = f"push → found in the memory {what}, p50 / p95 (n={len(found[origin])})"
    return Line(what, milliseconds(p50, p95), f"{NONE} / {limit:g} s", p95 <= limit, values=values)


@contextmanager
def _embedding_engine(stage: Stage) -> Iterator[None]:
    engine = EmbeddingEngine(stage.home)
    engine.ensure()
    try:
        yield
    finally:
        engine.stop()


async def _found(stage: Stage, samples: int, rate: float, *, sample: int, by: Sequence[str]) -> dict[str, list[float]]:
    """Seconds from the push of every ``sample``-th message until a search finds it ``by`` each of these."""
    url, session = await embedded_database(stage.home).start(), stage.new_session()
    embedder = EngineEmbedder(MODEL, lambda: EmbeddingEngine(stage.home).ensure().url, lambda: None)
    stores = {BY_WORDS: PostgresMemory(url), BY_MEANING: PostgresMemory(url, embedder)}
    try:
        with stage.observer(session) as observer, stage.daemon(session, embedded_embeddings=True):
            speech = _Speech(observer, stores, embedder)
            await speech.said_and_found(by)  # everything is loaded, which is not measured
            looking: list[asyncio.Task[list[float]]] = []
            due = time.monotonic()
            for turn in range(samples * sample):
                if turn % sample == 0:
                    looking.append(asyncio.create_task(speech.said_and_found(by)))
                else:
                    speech.say()
                due += 1 / rate
                await asyncio.sleep(due - time.monotonic())
            taken = await asyncio.gather(*looking)
    finally:
        for store in stores.values():
            await store.close()
    return {origin: list(seconds) for origin, seconds in zip(by, zip(*taken, strict=True), strict=True)}


class _Speech:
    """Says the demo's talk in a session, each message with a word of its own, and looks for what was said."""

    def __init__(self, observer: Observer, stores: Mapping[str, PostgresMemory], embedder: EngineEmbedder) -> None:
        self._observer = observer
        self._stores = stores
        self._embedder = embedder
        self._texts = demo_talk()

    def say(self) -> str:
        """Push the next message; return its word."""
        word = f"sample{self._observer.number + 1:06}"
        self._observer.text = f"{next(self._texts)} {word}"
        self._observer.push()
        return word

    async def said_and_found(self, by: Sequence[str]) -> list[float]:
        """Push the next message; return the seconds until it is found by each of these."""
        pushed = time.monotonic()
        word, text = self.say(), self._observer.text or ""
        return list(await asyncio.gather(*(self._found(origin, word, text, pushed) for origin in by)))

    async def _found(self, origin: str, word: str, text: str, pushed: float) -> float:
        where = MemoryFilter(session_id=self._observer.session_id)
        query = MemoryQuery(word, filter=where)
        if origin == BY_MEANING:  # much of what is said is alike
            query = MemoryQuery("", MANY, filter=where, embedding=await self._embedder.embed_query(text))
        while not any(
            word in hit.memory.text and origin in hit.origins
            for hit in await self._stores[origin].search(DEFAULT_TENANT, query)
        ):
            if time.monotonic() > pushed + PATIENCE:
                raise BenchError(f"waited {PATIENCE:g} s until {word} was found by {origin}")
            await asyncio.sleep(LOOK_EVERY)
        return time.monotonic() - pushed


# A backlog, until nothing is left in the input and every message is in buffer, pending list or summary


def backlog(stage: Stage, scale: Scale) -> Iterator[Line]:
    bare = statistics.median(_bare_backlog(stage) for _ in range(scale.backlogs))
    for what, measure, model in (
        ("pushed before the daemon is ready", _pushed_before, False),
        ("pushed while it runs", _pushed_meanwhile, False),
        ("pushed while it runs, with a model", _pushed_meanwhile, True),
    ):
        rate = statistics.median(measure(stage, model=model) for _ in range(scale.backlogs))
        yield Line(
            f"a backlog {what}",
            f"{rate:,.0f} messages/s",
            "5,000/s",
            rate >= 5_000,
            f"bare loop {bare:,.0f}/s (×{rate / bare:.1f})",
            {"messages_per_s": rate, "bare_messages_per_s": bare},
        )


def _pushed_before(stage: Stage, *, model: bool) -> float:
    session = stage.new_session()
    with stage.observer(session) as observer:
        observer.push(BACKLOG)
        with stage.child("context_builder", "run", session, model=model) as daemon:
            done = taken_in(observer)
            return BACKLOG / (done - daemon.wait_for("session.ready"))


def _pushed_meanwhile(stage: Stage, *, model: bool) -> float:
    session = stage.new_session()
    with stage.observer(session) as observer, stage.daemon(session, model=model):
        warm_up(observer)
        began = observer.push(BACKLOG)
        return BACKLOG / (taken_in(observer) - began)


def _bare_backlog(stage: Stage) -> float:
    """A tenth of the backlog, with a buffer that is full from the start; visible, but nothing is durable here."""
    session, messages = stage.new_session(), BACKLOG // 10
    with stage.observer(session) as observer, _bare_loop(stage, session, BUFFER_MAX):
        began = observer.push(messages)
        return messages / (observer.see_newest() - began)


def taken_in(observer: Observer) -> float:
    """The monotonic moment at which nothing is left in the input; checks that every message is somewhere."""
    done = observer.see_counter("received_messages", observer.number, LONGEST_WAIT)
    left, state = observer.redis.llen(observer.keys.input), observer.state()
    places = len(state["raw_recent_buffer"]), state["pending_messages"], state["rolling_summary"]["message_count"]
    if left or sum(places) != observer.number or state["highest_message_number"] != observer.number:
        raise BenchError(
            f"of {observer.number} messages {left} are in the input, {places} buffered, pending, summarized"
        )
    return done


# What it costs that nothing is lost or doubled, against the same daemon that takes no such care

PROGRAMS: Final = ("context_builder", "scripts.benches.programs.unprotected")


def protocol(stage: Stage, scale: Scale) -> Iterator[Line]:
    """The medians of as many backlogs each, taken in turns."""
    turns = [[_intake(stage, program) for program in PROGRAMS] for _ in range(scale.backlogs)]
    (rate, cost), (bare_rate, bare_cost) = (
        tuple(statistics.median(figures) for figures in zip(*taken, strict=True)) for taken in zip(*turns, strict=True)
    )
    yield Line(
        "throughput kept, against the same loop without acknowledgement, fence and identities",
        f"{rate / bare_rate:.0%}: {rate:,.0f} messages/s, {1e6 * cost:.0f} µs of the daemon each",
        "70 %",
        rate / bare_rate >= 0.7,
        f"without: {bare_rate:,.0f}/s, {1e6 * bare_cost:.0f} µs",
        {
            "messages_per_s": rate,
            "unprotected_messages_per_s": bare_rate,
            "cost_s": cost,
            "unprotected_cost_s": bare_cost,
        },
    )


def _intake(stage: Stage, program: str) -> tuple[float, float]:
    """Messages a second of a backlog, and the daemon's processor seconds a message.

    The daemon stands still while the backlog is pushed, so that pushing is no part of it.
    """
    session = stage.new_session()
    with stage.observer(session) as observer, stage.daemon(session, program=program) as daemon:
        warm_up(observer)
        os.kill(daemon.pid, signal.SIGSTOP)
        observer.push(BACKLOG)
        process = psutil.Process(daemon.pid)
        before, began = sum(process.cpu_times()[:2]), time.monotonic()
        os.kill(daemon.pid, signal.SIGCONT)
        seconds = taken_in(observer) - began
        return BACKLOG / seconds, (sum(process.cpu_times()[:2]) - before) / BACKLOG


# When nobody speaks any more: silence is told in time, and what was said is summarized

SPOKEN: Final = 5


def silence(stage: Stage, scale: Scale) -> Iterator[Line]:
    """Two sessions at once; their conversation state is read every 20 ms."""
    with ExitStack() as stack:
        watched: list[tuple[str, Observer, float]] = []
        for model, label in MODELS.items():
            session = stage.new_session()
            observer = stack.enter_context(stage.observer(session))
            stack.enter_context(stage.daemon(session, model=model))
            spoke = [observer.push() for _ in paced(SPOKEN, 10.0)][-1]
            observer.see_newest()
            watched.append((label, observer, spoke))
        flipped: dict[str, float] = {}
        stalest = dict.fromkeys(MODELS.values(), 0.0)
        until = time.monotonic() + scale.silence
        while time.monotonic() < until:
            for label, observer, spoke in watched:
                published, elapsed = observer.conversation_state(), time.monotonic() - spoke
                stalest[label] = max(stalest[label], abs(elapsed - published["time_since_last_message"]))
                if published["silence"]:
                    flipped.setdefault(label, elapsed)
            time.sleep(LOOK_EVERY)
    for label in MODELS.values():
        if label not in flipped:
            raise BenchError(f"{label}: silence was never told")
        flip, stale = flipped[label], stalest[label]
        what, values = f"silence flips after, staleness at most, {label}", {"flip_s": flip, "stalest_s": stale}
        reached = 4.0 <= flip <= 4.6 and stale <= 0.6
        yield Line(what, f"{flip:.2f} s, {stale:.2f} s", "4.0–4.6 s, 0.6 s", reached, values=values)


def idle(stage: Stage, scale: Scale) -> Iterator[Line]:
    """Two sessions at once: seconds beyond the window and the model's own time until the summary is published."""
    window = scale.summary_window
    with ExitStack() as stack:
        waiting: list[tuple[str, Observer, float]] = []
        for model, label in MODELS.items():  # in the order in which they will be done
            session = stage.new_session()
            observer = stack.enter_context(stage.observer(session))
            stack.enter_context(stage.daemon(session, model=model, raw_buffer_time_window=window))
            began, *_ = [observer.push() for _ in paced(SPOKEN, 10.0)]
            waiting.append((label, observer, began + window + (LATENCY["summary"] if model else 0.0)))
        for label, observer, due in waiting:
            done = observer.see_state("there is a summary", lambda s: s["rolling_summary"]["message_count"] > 0)
            beyond = done - due
            what = f"idle conversation summarized beyond a window of {window:g} s and the model's latency, {label}"
            yield Line(what, f"{beyond:.2f} s", "1 s", 0 <= beyond <= 1.0, values={"beyond_s": beyond})


# How soon the process is ready, and what memory it takes


def ready(stage: Stage, scale: Scale) -> Iterator[Line]:
    """From the start of the process to its ``session.ready``."""
    taken = []
    for model in MODELS:
        for _ in range(scale.starts):
            with stage.child("context_builder", "run", stage.new_session(), model=model) as daemon:
                taken.append(daemon.wait_for("session.ready") - daemon.started)
    median, slowest = statistics.median(taken), max(taken)
    said, values = f"{median:.2f} s (slowest {slowest:.2f} s)", {"median_s": median, "max_s": slowest}
    yield Line(f"process ready, median of {len(taken)}", said, "1.5 s", median <= 1.5, values=values)


def memory(stage: Stage, scale: Scale) -> Iterator[Line]:
    """After keywords, domains and a summary that is archived: everything that is loaded lazily is loaded."""
    del scale
    for model, limit in ((False, 75), (True, 190)):
        session = stage.new_session()
        with (
            stage.observer(session) as observer,
            stage.daemon(session, model=model, raw_buffer_time_window=2.0) as daemon,
        ):
            for _ in paced(20, 20.0):
                observer.push()
            daemon.wait_for("summary.archived")
            used = psutil.Process(daemon.pid).memory_full_info()
        rss, uss = used.rss / MEGABYTE, used.uss / MEGABYTE
        values = {"rss_mb": rss, "uss_mb": uss}
        yield Line(
            f"memory, RSS (USS), {MODELS[model]}",
            f"{rss:.0f} MB ({uss:.0f} MB)",
            f"{limit} MB",
            rss <= limit,
            values=values,
        )


ROWS: Final[Mapping[str, Callable[[Stage, Scale], Iterator[Line]]]] = {
    one.__name__: one for one in (visible, keywords, findable, backlog, protocol, silence, idle, ready, memory)
}


def main() -> int:
    asked = parser(__doc__, ROWS)
    asked.add_argument("--quick", action="store_true", help="fewer samples, in about a minute")
    options = asked.parse_args()

    def measure(report: Report) -> None:
        with open_stage() as stage:
            with stage.observer(stage.new_session()) as observer:
                own = milliseconds(*p50_p95(observer.own_cost(200)))
            report.notes.append(f"The measuring client's own part of push → visible, p50 / p95: {own}.")
            for row in options.only or ROWS:
                report.extend(ROWS[row](stage, QUICK if options.quick else Scale()))

    return run("Live: one session's daemon on its own Redis", measure, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
