"""What so many sessions need, and what is too small first: costs of a session, added up; all of it pure.

Sessions are those that somebody spoke in within the last hour: earlier ones cost nothing but their bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scripts.benches.hosting.points import Points, point
from scripts.benches.hosting.simulation import Measured, WorkerModel, calibrate

USED: Final = 0.7
"""Share of a core or of a thread that is to be used at most, so that queues stay short."""

MOST_SESSIONS: Final = 2_000
"""Sessions awake in a worker (``FLEET_CONCURRENCY``)."""

MOST_WORKERS: Final = 10**6

KEYS_SCANNED: Final = 40_000
"""Keys that a worker scans a second."""

KEYS_PER_SESSION: Final = 8

CALIBRATED_IDLE: Final = (0, 500, 2_000)
CALIBRATED_RATE: Final = 40


@dataclass(frozen=True, slots=True)
class Costs:
    """Holds what is paid a second, in cores where nothing else is said, for a worker, a session and a message.

    ``heard`` is for each message that a worker is told of whose session runs elsewhere; ``bytes_a_message`` is the
    network of Redis, ``bytes_awake`` that of a session a second; ``stored_awake`` and ``stored_asleep`` are bytes.
    ``tokens`` and ``rows`` are those of a message, ``messages`` those of a talking session a second.
    """

    worker: WorkerModel
    analysis_message: float
    redis_worker: float
    redis_awake: float
    redis_asleep: float
    redis_message: float
    redis_heard: float
    worker_heard: float
    commands_worker: float
    commands_awake: float
    commands_asleep: float
    commands_message: float
    postgres_message: float
    bytes_message: float
    bytes_awake: float
    stored_talking: float
    stored_asleep: float
    messages: float
    tokens: float
    rows: float


@dataclass(frozen=True, slots=True)
class Shares:
    """Says which of the sessions are spoken in at a time, and which others are awake; the rest sleeps."""

    talking: float = 0.1
    idle: float = 0.1


@dataclass(frozen=True, slots=True)
class Limits:
    """Says what there is at most: of a machine, of a database, of a Redis, and of the model's tokens a minute."""

    cores: int = 16
    postgres_cores: float = 16.0
    redis_bytes: float = 64e9
    tokens_a_minute: float = 10e6
    scan_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Needs:
    """Tells what so many sessions need with so many Redis servers.

    ``load`` is by what may be too small first, where 1 is as much as there is, or may be used. ``workers`` is None
    where no number of them is enough.
    """

    sessions: int
    servers: int
    messages: float
    workers: int | None
    machines: int | None
    redis_core: float
    commands: float
    bytes_a_second: float
    stored: float
    tokens_a_minute: float
    rows_a_day: float
    postgres_cores: float
    load: Mapping[str, float]

    @property
    def too_small_first(self) -> str:
        return max(self.load, key=lambda what: self.load[what])


def measured(points: Points, part: str, **wanted: object) -> Measured:
    """Return a point of ``idle`` or ``talking``."""
    one = point(points, part, **wanted)
    figures = (one["worker"], one.get("p50", 0.0), one.get("p95", 0.0))
    return Measured(one["sessions"], one.get("rate", 0.0), *figures)


def calibrated(points: Points) -> WorkerModel:
    """Return the model of a worker, by :data:`CALIBRATED_IDLE` and :data:`CALIBRATED_RATE` and nothing else."""
    idle = [measured(points, "idle", sessions=sessions) for sessions in CALIBRATED_IDLE]
    return calibrate(idle, measured(points, "talking", rate=CALIBRATED_RATE))


def costs(points: Points) -> Costs:
    """Return what the points say that a worker, a session and a message cost."""
    alone, awake = point(points, "idle", sessions=0), point(points, "idle", sessions=CALIBRATED_IDLE[-1])
    talking, beside = point(points, "talking", rate=CALIBRATED_RATE), points["beside"][0]
    same_rate = point(points, "talking", rate=beside["rate"])
    asleep, demo = points["asleep"][-1], points["demo"][0]

    def each_awake(name: str) -> float:
        return float((awake[name] - alone[name]) / awake["sessions"])

    def a_message(name: str) -> float:
        return float((talking[name] - alone[name] - each_awake(name) * talking["sessions"]) / talking["rate"])

    def heard(name: str, without: float) -> float:
        return float(max(0.0, beside[name] - without) / beside["rate"])

    tokens = sum(spent["prompt_tokens"] + spent["completion_tokens"] for spent in demo["tasks"].values())
    return Costs(
        worker=calibrated(points),
        analysis_message=max(0.0, a_message("analysis")),
        redis_worker=alone["redis"],
        redis_awake=each_awake("redis"),
        redis_asleep=max(0.0, asleep["redis"] - alone["redis"]) / asleep["sessions"],
        redis_message=a_message("redis"),
        redis_heard=heard("redis", same_rate["redis"] + alone["redis"]),
        worker_heard=heard("worker", alone["worker"]),
        commands_worker=alone["commands"],
        commands_awake=each_awake("commands"),
        commands_asleep=max(0.0, asleep["commands"] - alone["commands"]) / asleep["sessions"],
        commands_message=a_message("commands"),
        postgres_message=max(0.0, a_message("postgres")),
        bytes_message=a_message("bytes_in") + a_message("bytes_out"),
        bytes_awake=each_awake("bytes_in") + each_awake("bytes_out"),
        stored_talking=demo["redis_bytes_talking"],
        stored_asleep=demo["redis_bytes_asleep"],
        messages=demo["messages"] / (3600 * demo["hours"]),
        tokens=tokens / demo["messages"],
        rows=sum(table["rows"] for table in demo["rows"].values()) / demo["messages"],
    )


def needs(cost: Costs, sessions: int, shares: Shares, limits: Limits, servers: int = 1) -> Needs:
    """Return what so many sessions need on so many Redis servers, among which sessions are divided evenly."""
    talking, awake = shares.talking * sessions, (shares.talking + shares.idle) * sessions
    asleep = sessions - awake
    rate = talking * cost.messages
    workers = _workers(cost, awake, rate)
    others = (workers or MOST_WORKERS) - 1 if workers else math.ceil(_awake_cores(cost, awake, rate) / USED)
    redis = (
        cost.redis_worker * (others + 1) * servers  # each worker asks each server
        + cost.redis_awake * awake
        + cost.redis_asleep * asleep
        + (cost.redis_message + cost.redis_heard * others) * rate
    )
    keeper = cost.redis_asleep * asleep / servers
    stored = cost.stored_talking * talking + cost.stored_asleep * (sessions - talking)
    tokens, postgres = 60 * cost.tokens * rate, cost.postgres_message * rate
    return Needs(
        sessions=sessions,
        servers=servers,
        messages=rate,
        workers=workers,
        machines=None if workers is None else math.ceil((workers + cost.analysis_message * rate / USED) / limits.cores),
        redis_core=redis / servers,
        commands=cost.commands_worker * (others + 1)
        + cost.commands_awake * awake
        + cost.commands_asleep * asleep
        + cost.commands_message * rate,
        bytes_a_second=cost.bytes_message * rate + cost.bytes_awake * awake,
        stored=stored,
        tokens_a_minute=tokens,
        rows_a_day=86_400 * cost.rows * rate,
        postgres_cores=postgres,
        load={
            "one Redis's thread": redis / servers / USED,
            "what every worker hears of others": cost.worker_heard * rate / USED,
            "the sleepers' keeper": keeper / USED,
            "the model's tokens": tokens / limits.tokens_a_minute,
            "PostgreSQL's cores": postgres / limits.postgres_cores / USED,
            "one Redis's memory": stored / servers / limits.redis_bytes,
            "a look at all keys": KEYS_PER_SESSION * sessions / servers / KEYS_SCANNED / limits.scan_seconds,
        },
    )


def enough_servers(cost: Costs, sessions: int, shares: Shares, limits: Limits) -> int:
    """Return the fewest Redis servers on which neither thread, keeper, memory nor scan is too small; 0 if none are."""
    of_redis = ("one Redis's thread", "the sleepers' keeper", "one Redis's memory")
    servers = 1
    while servers <= 4096:
        load = needs(cost, sessions, shares, limits, servers).load
        if all(load[what] <= 1 for what in of_redis):
            return servers
        servers += max(1, servers // 16)
    return 0


def reached_at(cost: Costs, what: str, shares: Shares, limits: Limits) -> int:
    """Return with how many sessions something is as small as it may be, on one Redis."""
    low, high = 1, 10**9
    while high - low > max(1, low // 1000):
        middle = (low + high) // 2
        is_enough = needs(cost, middle, shares, limits).load[what] <= 1
        low, high = (middle, high) if is_enough else (low, middle)
    return low


def _awake_cores(cost: Costs, awake: float, rate: float) -> float:
    return cost.worker.awake * awake + cost.worker.message * rate


def _workers(cost: Costs, awake: float, rate: float) -> int | None:
    """Return the fewest workers of which none uses more of its core than :data:`USED`; all hear of all pushes."""
    room = USED - cost.worker.alone - cost.worker_heard * rate
    own = _awake_cores(cost, awake, rate) - cost.worker_heard * rate  # a worker does not hear its own twice
    if room <= 0:
        return None
    return max(1, math.ceil(awake / MOST_SESSIONS), math.ceil(own / room))
