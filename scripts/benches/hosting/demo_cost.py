"""What a conversation costs: the demo's, spoken in its own time in some sessions, with a model that answers by rule."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson
import redis

from context_builder.demo import load_demo
from context_builder.engines.postgres import PostgresEngine
from context_builder.fleet.sleepers import SLEEPERS
from context_builder.session.keys import Keys
from context_builder.session.messages.message import CONSILIENCE
from scripts.benches.daemon.processes import BenchError
from scripts.benches.daemon.stage import Stage
from scripts.benches.hosting.fleet_workers import fleet_worker
from scripts.benches.hosting.points import Point

SESSIONS: Final = 20
SLEEP: Final = 170.0
"""Seconds after the last message; by then everything is summarized, which begins after two minutes."""

PATIENCE: Final = 120.0
TABLES: Final = ("context_memories", "context_summaries")


def demo_cost(stage: Stage) -> Point:
    """Return a point whose figures are a session's: messages, tokens and calls by task, rows, bytes in Redis."""
    names = [f"demo-{number}" for number in range(SESSIONS)]
    said = [one for one in load_demo() if one.speaker != CONSILIENCE and one.at is not None]
    with fleet_worker(stage, model=True, session_sleep=SLEEP), redis.Redis.from_url(stage.redis_url) as client:
        before = _used(client)
        began = time.monotonic()
        for number, one in enumerate(said, start=1):
            time.sleep(max(0.0, began + (one.at or 0.0) - time.monotonic()))
            for name in names:
                message = {"session_id": name, "speaker": one.speaker, "text": one.text, "message_number": number}
                client.lpush(Keys(name).input, orjson.dumps(message))
        time.sleep(2.0)
        talking = (_used(client) - before) / SESSIONS
        keys_talking = _keys(client, names)
        _wait("all sessions sleep", lambda: int(client.zcard(SLEEPERS)) == SESSIONS, SLEEP + PATIENCE)
        asleep = (_used(client) - before) / SESSIONS
        keys_asleep = _keys(client, names)
        tasks = _tasks(client, names)
    hours = (said[-1].at or 0.0) / 3600
    rows = asyncio.run(_rows(stage, names))
    return {
        "sessions": SESSIONS,
        "messages": len(said),
        "hours": hours,
        "tasks": tasks,
        "rows": rows,
        "redis_bytes_talking": talking,
        "redis_bytes_asleep": asleep,
        "memory_usage_talking": keys_talking,
        "memory_usage_asleep": keys_asleep,
    }


def _used(client: redis.Redis) -> float:
    info: Any = client.info("memory")
    return float(info["used_memory_dataset"])


def _keys(client: redis.Redis, names: Sequence[str]) -> dict[str, float]:
    """Return the bytes of each of a session's keys, by MEMORY USAGE."""
    found: Counter[str] = Counter()
    for name in names:
        for key in Keys(name).all():
            found[key.replace(name, "ID")] += int(client.memory_usage(key, samples=0) or 0)
    return {key: size / len(names) for key, size in found.items() if size}


def _tasks(client: redis.Redis, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return calls and tokens by task, as the states publish them."""
    found: dict[str, Counter[str]] = {}
    for name in names:
        state: Any = orjson.loads(client.get(Keys(name).state) or b"{}")
        for task, spent in state["cost"]["tasks"].items():
            counted = ("calls", "prompt_tokens", "completion_tokens")
            found.setdefault(task, Counter()).update({what: spent[what] for what in counted})
    return {task: {what: count / len(names) for what, count in spent.items()} for task, spent in found.items()}


async def _rows(stage: Stage, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return rows and bytes, with indexes, that a session has in each table."""
    import asyncpg

    address = PostgresEngine(stage.home).running()
    if address is None:
        raise BenchError("the bench's PostgreSQL is gone")
    connection = await asyncpg.connect(address.url)
    try:
        found = {}
        for table in TABLES:
            count = await connection.fetchval(f"SELECT count(*) FROM {table} WHERE session_id = ANY($1)", list(names))
            every, size = await connection.fetchrow(f"SELECT count(*), pg_total_relation_size('{table}') FROM {table}")
            found[table] = {"rows": count / len(names), "bytes_a_row": size / max(1, every)}
        return found
    finally:
        await connection.close()


def _wait(what: str, is_so: Callable[[], bool], patience: float) -> None:
    deadline = time.monotonic() + patience
    while not is_so():
        if time.monotonic() > deadline:
            raise BenchError(f"waited {patience:g} s until {what}")
        time.sleep(1.0)
