"""What larger fleets need, from points of one worker that were measured: costs of a session, added up.

A worker's core, Redis's thread and the rest are taken to grow by a straight line with the sessions awake and with the
messages a second. Points that the line is not made from show how well that holds. Sessions are those that somebody
spoke in within the last hour: earlier ones cost nothing but their bytes.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import platform
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
import redis
from rich.table import Table

from context_builder.demo import load_demo
from context_builder.engines.postgres import PostgresEngine
from context_builder.fleet.sleepers import SLEEPERS
from context_builder.session.keys import Keys
from context_builder.session.messages.message import CONSILIENCE
from scripts.benches.harness.memory import connected
from scripts.benches.harness.report import BenchError, Line, Report
from scripts.benches.harness.stage import Stage, wait_until
from scripts.benches.harness.workers import (
    BENCH_EVENTS,
    MANY_KEYS,
    Meter,
    Others,
    Speakers,
    cost_of,
    empty,
    fleet_worker,
    put_to_sleep,
    scanning,
    session_names,
)

FILE: Final = Path(__file__).with_name("points.json")
_INNERMOST: Final = re.compile(r"\{[^{}]*\}")
"""A point in the file, or how a part was made: each is a line."""

Point = Mapping[str, Any]
"""Medians of some windows of time; ``others`` is what other work on the machine used of its cores then."""

Points = dict[str, Any]
"""Points by part (``idle``, ``talking`` …), and ``made``: by which command, when and on which machine."""

# Measuring the points

KEPT: Final = 3
WINDOWS: Final = 5
"""Windows of time that are measured at most, and of which those are kept in which others used least."""

QUIET: Final = 0.3
"""Cores that others may use without a window being one too many."""

SETTLING: Final = 45.0
"""Seconds after which nothing is due in a session that nobody speaks in."""

IDLE: Final = (0, 500, 1_000, 2_000)
SESSIONS: Final = 200
RATES: Final = (20, 40, 80)
"""Messages a second over all of these sessions: so few that a worker keeps up with them on a machine that it shares."""

ASLEEP: Final = 1_000
DEMO_SESSIONS: Final = 20
DEMO_SLEEP: Final = 170.0
"""Seconds after the last message; by then everything is summarized, which begins after two minutes."""

TABLES: Final = ("context_memories", "context_summaries")

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Measuring:
    """Where points are measured, and how long a window of time is."""

    stage: Stage
    seconds: float

    def point(self, figures: Callable[[], Figures], **of: float) -> Point:
        """Return the medians of what the quietest windows give, with the parameters that they are ``of``."""
        taken: list[Figures] = []
        while len(taken) < WINDOWS and sum(one["others"] < QUIET for one in taken) < KEPT:
            others = Others(self.stage.home)
            taken.append({**figures(), "others": others.cores()})
        kept = sorted(taken, key=lambda one: one["others"])[:KEPT]
        medians = {name: float(f"{statistics.median(one[name] for one in kept):.6g}") for name in kept[0]}
        return {**of, **medians}

    def resting(self, pid: int) -> Figures:
        return cost_of(self.stage, self.seconds, pid)

    def speaking(self, pid: int, speakers: Speakers, rate: float) -> Figures:
        """Return what this worker costs while people speak."""
        meter = Meter(self.stage, pid)
        speakers.speak_without_waiting(rate, self.seconds)
        cost = meter.cost()
        if not speakers.wait():
            raise BenchError(f"at {rate:g} messages/s not all is visible a minute later")
        return cost


def _idle(measuring: Measuring) -> Iterator[Point]:
    stage, before = measuring.stage, 0
    with fleet_worker(stage) as worker:
        for sessions in IDLE:
            if names := session_names(sessions)[before:]:
                with Speakers(stage.redis_url, names) as speakers:
                    speakers.speak(100, 2 * len(names) / 100)
                time.sleep(SETTLING)
            before = sessions
            yield measuring.point(partial(measuring.resting, worker.pid), sessions=sessions)


def _talking(measuring: Measuring) -> Iterator[Point]:
    stage = measuring.stage
    with fleet_worker(stage) as worker, Speakers(stage.redis_url, session_names(SESSIONS)) as speakers:
        speakers.speak(100, 2 * SESSIONS / 100)
        for rate in RATES:
            yield measuring.point(partial(measuring.speaking, worker.pid, speakers, rate), sessions=SESSIONS, rate=rate)


def _beside(measuring: Measuring) -> Iterator[Point]:
    """A worker beside another one that runs all sessions; ``worker`` is its core, the rest is of both.

    It has room for one session, so that it takes none of those that docket delivers again when the machine is busy.
    """
    stage, rate = measuring.stage, CALIBRATED_RATE
    with fleet_worker(stage), Speakers(stage.redis_url, session_names(SESSIONS)) as speakers:
        speakers.speak(100, 2 * SESSIONS / 100)
        with fleet_worker(stage, fleet_concurrency=1) as listening:
            figures = partial(measuring.speaking, listening.pid, speakers, rate)
            yield measuring.point(figures, sessions=SESSIONS, rate=rate)


def _asleep(measuring: Measuring) -> Iterator[Point]:
    put_to_sleep(measuring.stage, ASLEEP)
    with fleet_worker(measuring.stage) as worker:
        time.sleep(5.0)
        yield measuring.point(partial(measuring.resting, worker.pid), sessions=ASLEEP)


def _scan(measuring: Measuring) -> Iterator[Point]:
    cost, scan = scanning(measuring.stage, BENCH_EVENTS, MANY_KEYS, measuring.seconds)
    empty(measuring.stage)
    yield {"keys": MANY_KEYS, "scan_seconds": scan, **cost}


def _demo(measuring: Measuring) -> Iterator[Point]:
    """What a conversation costs: the demo's, spoken in its own time, with a model that answers by rule."""
    stage, names = measuring.stage, session_names(DEMO_SESSIONS, "demo")
    said = [one for one in load_demo() if one.speaker != CONSILIENCE and one.at is not None]
    with (
        fleet_worker(stage, model=True, session_sleep=DEMO_SLEEP),
        redis.Redis.from_url(stage.redis_url) as client,
    ):

        def used() -> float:
            info: Any = client.info("memory")
            return float(info["used_memory_dataset"])

        before, began = used(), time.monotonic()
        for number, one in enumerate(said, start=1):
            time.sleep(max(0.0, began + (one.at or 0.0) - time.monotonic()))
            for name in names:
                message = {"session_id": name, "speaker": one.speaker, "text": one.text, "message_number": number}
                client.lpush(Keys(name).input, orjson.dumps(message))
        time.sleep(2.0)
        talking = used() - before
        wait_until(lambda: client.zcard(SLEEPERS) == len(names), "all sessions sleep", DEMO_SLEEP + 120, poll=1.0)
        asleep = used() - before
        tokens = sum(_tokens(client, name) for name in names)
    yield {
        "messages": len(said),
        "hours": (said[-1].at or 0.0) / 3600,
        "tokens": tokens / len(names),
        "rows": asyncio.run(_rows(stage, names)) / len(names),
        "redis_bytes_talking": talking / len(names),
        "redis_bytes_asleep": asleep / len(names),
    }


def _tokens(client: redis.Redis, name: str) -> int:
    """Return the model's tokens that a session's state publishes."""
    encoded: Any = client.get(Keys(name).state)
    spent = Counter[str]()
    for task in orjson.loads(encoded or b'{"cost": {"tasks": {}}}')["cost"]["tasks"].values():
        spent.update(task)
    return spent["prompt_tokens"] + spent["completion_tokens"]


async def _rows(stage: Stage, names: Sequence[str]) -> int:
    address = PostgresEngine(stage.home).running()
    if address is None:
        raise BenchError("the benchmark's PostgreSQL is gone")
    async with connected(address.url) as connection:
        counted = "SELECT count(*) FROM {} WHERE session_id = ANY($1)"
        return sum([await connection.fetchval(counted.format(table), list(names)) for table in TABLES])


PARTS: Final[Mapping[str, Callable[[Measuring], Iterator[Point]]]] = {
    "idle": _idle,
    "talking": _talking,
    "beside": _beside,
    "asleep": _asleep,
    "scan": _scan,
    "demo": _demo,
}


def measure_points(stage: Stage, parts: Iterable[str], seconds: float, command: str) -> None:
    """Measure these parts of :data:`FILE` anew, and write each when it is done."""
    for part in parts:
        print(f"{part} …", file=sys.stderr)
        empty(stage)
        measured = list(PARTS[part](Measuring(stage, seconds)))
        points: Points = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {"made": {}}
        made = {
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{os.cpu_count()} cores, {platform.platform()}, Python {platform.python_version()}",
            "command": command,
            "load_average": round(os.getloadavg()[1], 2),
        }
        points |= {part: measured, "made": {**points["made"], part: made}}
        written = json.dumps(points, indent=1, sort_keys=True)
        FILE.write_text(_INNERMOST.sub(lambda one: " ".join(one[0].split()), written) + "\n", "utf-8")


# What so many sessions need

USED: Final = 0.7
"""Share of a core or of a thread that is to be used at most, so that queues stay short."""

MOST_SESSIONS: Final = 2_000
"""Sessions awake in a worker (``FLEET_CONCURRENCY``)."""

KEYS_SCANNED: Final = 40_000
"""Keys that a worker scans a second; a session has :data:`KEYS_PER_SESSION`."""

KEYS_PER_SESSION: Final = 8
CALIBRATED_IDLE: Final = (0, 500, 2_000)
CALIBRATED_RATE: Final = 40
MOST_ERROR: Final = 0.25
SIZES: Final = (1_000, 100_000, 1_000_000)

CORES: Final = 16
POSTGRES_CORES: Final = 16.0
REDIS_BYTES: Final = 64e9
TOKENS_A_MINUTE: Final = 10e6
SCAN_SECONDS: Final = 60.0
"""What there is at most: cores of a machine and of the database, a Redis's memory, the model's tokens, and time to look
at all keys."""


class Shares(NamedTuple):
    """Which of the sessions are spoken in at a time, and which others are awake; the rest sleeps."""

    talking: float = 0.1
    idle: float = 0.1


@dataclass(frozen=True, slots=True)
class Costs:
    """What is paid a second, by what is used: for a worker alone, a session awake or asleep, and a message.

    ``heard`` is for each message that a worker is told of whose session runs elsewhere.
    """

    alone: Figures
    awake: Figures
    asleep: Figures
    message: Figures
    heard: Figures
    demo: Point

    @property
    def messages(self) -> float:
        """Messages a second of a session that is spoken in."""
        return float(self.demo["messages"] / (3600 * self.demo["hours"]))

    def core(self, sessions: float, rate: float) -> float:
        """Return the share of a core that one worker uses."""
        return self.alone["worker"] + self.awake["worker"] * sessions + self.message["worker"] * rate


USES: Final = ("worker", "analysis", "redis", "postgres", "commands", "bytes_in", "bytes_out")


def point(points: Points, part: str, **wanted: object) -> Point:
    """Return the point of that part with these parameters; raises :class:`BenchError` where it was not measured."""
    for one in points.get(part, ()):
        if all(one[name] == value for name, value in wanted.items()):
            found: Point = one
            return found
    raise BenchError(f"{part} {wanted} was not measured: ./scripts/bench fleet --simulate --measure {part}")


def costs(points: Points) -> Costs:
    """Return what the points say that a worker, a session and a message cost."""
    idle = [point(points, "idle", sessions=sessions) for sessions in CALIBRATED_IDLE]
    talking = point(points, "talking", rate=CALIBRATED_RATE)
    beside, asleep, demo = (point(points, part) for part in ("beside", "asleep", "demo"))
    most = CALIBRATED_IDLE[-1]
    alone = {use: float(idle[0][use]) for use in USES}
    awake = {use: (idle[-1][use] - idle[0][use]) / most for use in USES}
    slope, start = statistics.linear_regression(CALIBRATED_IDLE, [one["worker"] for one in idle])
    awake["worker"], alone["worker"] = slope, max(0.0, start)
    message = {
        use: max(0.0, talking[use] - alone[use] - awake[use] * talking["sessions"]) / talking["rate"] for use in USES
    }
    # The worker beside has no session; of Redis's figures those that the other one makes are known.
    without = {"worker": idle[0]["worker"], "redis": talking["redis"] + alone["redis"]}
    heard = {use: max(0.0, beside[use] - cost) / beside["rate"] for use, cost in without.items()}
    sleeping = {use: max(0.0, asleep[use] - alone[use]) / asleep["sessions"] for use in USES}
    return Costs(alone, awake, sleeping, message, heard, demo)


def needs(cost: Costs, sessions: int, shares: Shares, servers: int = 1) -> dict[str, float]:
    """Return what so many sessions need on so many Redis servers, among which they are divided evenly.

    ``workers`` is infinite where no number of them is enough.
    """
    talking, awake = shares.talking * sessions, (shares.talking + shares.idle) * sessions
    asleep, rate = sessions - awake, talking * cost.messages
    awake_cores = cost.awake["worker"] * awake + cost.message["worker"] * rate
    room = USED - cost.alone["worker"] - cost.heard["worker"] * rate
    own = awake_cores - cost.heard["worker"] * rate  # a worker does not hear its own twice
    workers = max(1, math.ceil(awake / MOST_SESSIONS), math.ceil(own / room)) if room > 0 else math.inf
    asking = workers if room > 0 else math.ceil(awake_cores / USED)

    def used(what: str, workers_cost: float = 0.0) -> float:
        return workers_cost + cost.awake[what] * awake + cost.asleep[what] * asleep + cost.message[what] * rate

    redis_thread = used("redis", cost.alone["redis"] * asking * servers)  # each worker asks each server
    redis_thread += cost.heard["redis"] * (asking - 1) * rate
    stored = cost.demo["redis_bytes_talking"] * talking + cost.demo["redis_bytes_asleep"] * (sessions - talking)
    return {
        "Redis servers": servers,
        "messages a second": rate,
        "workers": workers,
        f"machines of {CORES} cores": math.ceil((workers + cost.message["analysis"] * rate / USED) / CORES)
        if room > 0
        else math.inf,
        "each Redis's thread": redis_thread / servers,
        "Redis commands a second, all": used("commands", cost.alone["commands"] * asking),
        "Redis's network, bytes a second, all": used("bytes_in") + used("bytes_out"),
        "Redis's memory, bytes, all": stored,
        "model tokens a minute": 60 * cost.demo["tokens"] / cost.demo["messages"] * rate,
        "PostgreSQL rows a day": 86_400 * cost.demo["rows"] / cost.demo["messages"] * rate,
        "PostgreSQL's cores": cost.message["postgres"] * rate,
    }


def load(cost: Costs, sessions: int, shares: Shares, servers: int = 1) -> dict[str, float]:
    """Return how full each thing is that may be too small first; 1 is as full as it may be."""
    needed = needs(cost, sessions, shares, servers)
    asleep = sessions * (1 - shares.talking - shares.idle)
    return {
        "one Redis's thread": needed["each Redis's thread"] / USED,
        "what every worker hears of others": cost.heard["worker"] * needed["messages a second"] / USED,
        "the sleepers' keeper": cost.asleep["redis"] * asleep / servers / USED,
        "the model's tokens": needed["model tokens a minute"] / TOKENS_A_MINUTE,
        "PostgreSQL's cores": needed["PostgreSQL's cores"] / POSTGRES_CORES / USED,
        "one Redis's memory": needed["Redis's memory, bytes, all"] / servers / REDIS_BYTES,
        "a look at all keys": KEYS_PER_SESSION * sessions / servers / KEYS_SCANNED / SCAN_SECONDS,
    }


def enough_servers(cost: Costs, sessions: int, shares: Shares) -> int:
    """Return the fewest Redis servers on which neither thread, keeper, memory nor scan is too small; 1 if none are."""
    of_redis = ("one Redis's thread", "the sleepers' keeper", "one Redis's memory")
    servers = 1
    while servers <= 4096:
        full = load(cost, sessions, shares, servers)
        if all(full[what] <= 1 for what in of_redis):
            return servers
        servers += max(1, servers // 16)
    return 1


def reached_at(cost: Costs, what: str, shares: Shares) -> int:
    """Return with how many sessions something is as full as it may be, on one Redis."""
    low, high = 1, 10**9
    while high - low > max(1, low // 1000):
        middle = (low + high) // 2
        low, high = (middle, high) if load(cost, middle, shares)[what] <= 1 else (low, middle)
    return low


def report_sizes(file: Path, shares: Shares, report: Report) -> None:
    """Compare the points that the model was not made from; where its cores are right, tell of other sizes."""
    points: Points = json.loads(file.read_text("utf-8"))
    cost = costs(points)
    for part in ("idle", "talking"):
        for one in points[part]:
            sessions, rate = one["sessions"], one.get("rate", 0)
            if sessions in CALIBRATED_IDLE or rate == CALIBRATED_RATE:
                continue
            core = cost.core(sessions, rate)
            error = abs(core / one["worker"] - 1)
            what = f"worker's core, {sessions:,} sessions, {rate:g} messages/s: simulated; measured"
            said = f"{core:.3g}; {one['worker']:.3g} ({error:.0%} off)"
            report.add(Line(what, said, f"{MOST_ERROR:.0%}", error <= MOST_ERROR))
    for part, of in points["made"].items():
        report.notes.append(f"{part}: {of['date']}, {of['machine']}, load {of['load_average']}, {of['command']}")
    if any(line.missed for line in report.lines):
        report.notes.append("Nothing is told of other sizes: the points were not reproduced.")
        return
    report.tables += [_a_session(cost), _sizes(cost, shares), _limits(cost, shares)]


def _a_session(cost: Costs) -> Table:
    table = Table("a session", "asleep", "idle", "talking", title="What a session costs a second")
    for what, use, unit in (
        ("worker's core, µs", "worker", 1e6),
        ("Redis's thread, µs", "redis", 1e6),
        ("Redis commands", "commands", 1.0),
        ("Redis's network in, bytes", "bytes_in", 1.0),
        ("Redis's network out, bytes", "bytes_out", 1.0),
        ("PostgreSQL's core, µs", "postgres", 1e6),
    ):
        awake = unit * cost.awake[use]
        asleep = 0.0 if use == "worker" else unit * cost.asleep[use]
        table.add_row(what, *map(_short, (asleep, awake, awake + unit * cost.messages * cost.message[use])))
    demo, hours = cost.demo, cost.demo["hours"]
    stored = demo["redis_bytes_asleep"], demo["redis_bytes_asleep"], demo["redis_bytes_talking"]
    table.add_row("bytes in Redis", *map(_short, stored))
    for what in ("messages", "tokens", "rows"):
        table.add_row(f"{what} an hour", "0", "0", _short(demo[what] / hours))
    return table


def _sizes(cost: Costs, shares: Shares) -> Table:
    title = f"{shares.talking:.0%} talk, {shares.idle:.0%} are idle, the rest sleeps"
    columns = [(size, servers) for size in SIZES for servers in sorted({1, enough_servers(cost, size, shares)})]
    table = Table("sessions", *(f"{size:,}" for size, _ in columns), title=title)
    found = [needs(cost, size, shares, servers) for size, servers in columns]
    for what in found[0]:
        table.add_row(what, *(_short(one[what]) for one in found))
    return table


def _limits(cost: Costs, shares: Shares) -> Table:
    table = Table("what is too small", "from so many sessions on", title="On one Redis, each by itself")
    found = {what: reached_at(cost, what, shares) for what in load(cost, 1, shares)}
    for what, sessions in sorted(found.items(), key=lambda pair: pair[1]):
        table.add_row(what, _short(sessions))
    return table


def _short(figure: float) -> str:
    if math.isinf(figure):
        return "none are enough"
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(figure) >= size:
            return f"{figure / size:.3g} {unit}"
    return f"{figure:.3g}"
