"""How long a turn takes whose memory holds much, its query's embedding being given."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import asyncpg

from context_builder.assembly import ContextBuilder
from context_builder.database.migrations import apply
from context_builder.memory.memory import Memory
from context_builder.memory.postgres import PostgresMemory
from context_builder.tokens.counter import TokenCounter
from scripts.benches.memory.corpus import Corpus, conversations
from scripts.benches.memory.random_embeddings import DIMENSIONS, RandomEmbedder
from scripts.benches.memory.stage import database
from scripts.benches.prompts.options import MODEL, Options
from scripts.benches.shared.progress import progress
from scripts.benches.shared.report import Line, Report, p95

GOALS: Final = {10_000: 15.0, 200_000: 40.0}
"""Milliseconds at the 95th percentile, by how many memories the tenant has."""

PUBLISHED: Final = "seed: 200 ms; closest peer, 500 memories: 31–234 ms"

LOADED_AT_ONCE: Final = 2_000
WARM_UP: Final = 20
HISTORY: Final = 20


def recombined(talks: Sequence[Corpus], count: int) -> Iterator[Memory]:
    """So many memories in sessions of 400: the first half of one turn and the second of another."""
    choose = random.Random(2)
    turns = [memory for talk in talks for memory in talk.memories]
    halves = [
        (one.text.partition(". ")[0], other.text.rpartition(". ")[2])
        for one, other in zip(turns, choose.sample(turns, len(turns)), strict=True)
    ]
    for place in range(count):
        yield replace(
            turns[place % len(turns)],
            id=str(place),
            text=" ".join((choose.choice(halves)[0], choose.choice(halves)[1])),
            session_id=f"session-{place // 400}",
            position=place % 400,
        )


async def load(url: str, embedder: RandomEmbedder, tenant: str, memories: Sequence[Memory]) -> None:
    """Remember them all, and add and index the embeddings afterwards: that is quicker, and the same in the end."""
    by_words = PostgresMemory(url, timeout=600)
    starts = range(0, len(memories), LOADED_AT_ONCE)
    for start in progress(starts, f"loading {len(memories):,} memories"):
        await by_words.remember(tenant, memories[start : start + LOADED_AT_ONCE])
    await by_words.close()
    connection = await asyncpg.connect(url)
    try:
        for start in progress(starts, f"loading {len(memories):,} embeddings"):
            rows = [
                (tenant, memory.id, embedder.name, await embedder.embed_query(memory.text))
                for memory in memories[start : start + LOADED_AT_ONCE]
            ]
            columns = ("tenant_id", "id", "embedder", "embedding")
            await connection.copy_records_to_table("context_memory_vectors_default", records=rows, columns=columns)
        mark = "UPDATE context_memories SET embedder = $1 WHERE tenant_id = $2"
        await connection.execute(mark, embedder.name, tenant)
        await connection.execute("DELETE FROM context_memory_pending WHERE tenant_id = $1", tenant)
        # By one process alone: several would share more memory than a container has of that kind.
        await connection.execute("SET maintenance_work_mem = '1GB'; SET max_parallel_maintenance_workers = 0")
        await connection.execute("SELECT context_memory_separate($1, $2)", tenant, DIMENSIONS)
        await connection.execute("VACUUM ANALYZE")  # as the server does by itself within a minute
    finally:
        await connection.close()


async def measure_turns(options: Options, report: Report) -> None:
    talks = conversations(options, report)
    if not talks:
        return
    with database() as url:
        await apply(url)
        for count, goal in GOALS.items():
            if count == min(GOALS) or not options.quick:
                report.add(await turn_time(url, talks, count, goal, options.count(400)))


async def turn_time(url: str, talks: Sequence[Corpus], count: int, goal: float, turns: int) -> Line:
    """Turns of a tenant with ``count`` memories, by a turn's defaults, its deadline included."""
    choose, embedder, tenant = random.Random(3), RandomEmbedder(), f"many-{count}"
    store = PostgresMemory(url, embedder, timeout=600)
    await load(url, embedder, tenant, list(recombined(talks, count)))
    builder = ContextBuilder(store=store, token_counter=TokenCounter(MODEL).count)
    await builder.preload()
    times, without = [], 0
    for _ in range(turns + WARM_UP):
        turn = a_turn(choose, talks) | {"tenant_id": tenant, "query_embedding": await embedder.embed_query("")}
        started = time.perf_counter()
        context = await builder.build_for_turn(turn)
        times.append(1000 * (time.perf_counter() - started))
        without += not context.snippets
    await builder.drain()
    await store.close()
    slow = p95(times[WARM_UP:])
    late = f", {without} turns without memories" if without else ""
    return Line(
        f"build_for_turn, {count:,} memories, query embedding given, p50 / p95 of {turns} turns",
        f"{statistics.median(times[WARM_UP:]):.1f} / {slow:.1f} ms{late}",
        goal=f"{goal:.0f} ms",
        reached=slow <= goal and not without,
        published=PUBLISHED,
    )


def a_turn(choose: random.Random, talks: Sequence[Corpus]) -> dict[str, Any]:
    """A question, after some messages of the conversation that it is about."""
    talk = choose.choice(talks)
    start = choose.randrange(len(talk.memories) - HISTORY)
    said = talk.memories[start : start + HISTORY]
    return {
        "system_prompt": "You are a helpful assistant.",
        "user_message": choose.choice(talk.questions)[0],
        "history": [{"role": "user", "content": memory.text} for memory in said],
    }
