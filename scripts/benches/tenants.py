"""Whether a large tenant slows a small one: ``./scripts/bench tenants [--quick] [--rows N] [--json]``.

A tenant with 1,000 memories is searched alone in one database, and in another of the same server beside a tenant with
1,000,000, each question in one and then in the other. A ratio is that of beside to alone. Loading takes a quarter of
an hour.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import asyncpg

from context_builder.database.migrations import apply
from context_builder.database.postgres import PostgresDatabase
from context_builder.knowledge.store import ArtifactFilter, KnowledgeStore
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery
from context_builder.memory.sql_memory import PostgresMemory
from scripts.benches.harness.memory import RandomEmbedder, connected, copy_vectors, database, index_vectors
from scripts.benches.harness.report import Line, Report, p50_p95, parser, progress, run, timing

# Two databases of one server: in one a small tenant is alone, in the other the same one is beside a large one

SMALL: Final = "small"
LARGE: Final = "large"
MEMORIES: Final = 1_000
"""Of the small tenant, as many artifacts, and five times as many edges."""

VOCABULARY: Final = 50_000
SESSION: Final = 50
"""Memories of a session."""

USERS: Final = 20
MODULES: Final = 10
SHORTEST: Final = 8
BEGINNING: Final = datetime(2025, 1, 1, tzinfo=UTC)
PATIENCE: Final = 3600.0
AT_ONCE: Final = 10_000

# The n-th word comes once where the first comes n times. Every fifth memory is nobody's.
REMEMBER: Final = """
INSERT INTO context_memories (tenant_id, id, kind, session_id, user_id, speaker, said_at, position, text, embedder)
SELECT $1, 'm-' || n, 'message', 'session-' || n / $6::integer,
       CASE WHEN n % 5 > 0 THEN 'user-' || n / $6::integer % $7::integer END,
       'Speaker' || n % 3, $8::timestamptz + n * interval '1 minute', n % $6::integer, string_agg(v.word, ' '), $9
FROM (
    SELECT n, floor(power($5::float8, random()))::integer AS rank
    FROM generate_series($2::integer, $3::integer - 1) AS n, generate_series(1, $4::integer + n % 23) OFFSET 0
) AS r JOIN vocabulary AS v USING (rank) GROUP BY n
"""
PEND: Final = """
INSERT INTO context_memory_pending (tenant_id, id)
SELECT $1, 'm-' || n FROM generate_series($2::integer, $3::integer - 1) AS n
"""
KNOW: Final = """
INSERT INTO context_artifacts (tenant_id, ref, version, kind, title, content, digest, project_id, module_id, status,
                               tags, updated_at)
SELECT $1, 'artifact:' || n, 1, 'document', 'Title ' || n, 'Content of ' || n, sha256(n::text::bytea),
       'project-' || n % $4::integer, 'module-' || n / 7 % $5::integer, 'approved',
       ARRAY['tag-' || n % 13], $6::timestamptz + n * interval '1 minute'
FROM generate_series($2::integer, $3::integer - 1) AS n
"""
LINK: Final = """
INSERT INTO context_edges (tenant_id, from_ref, to_ref, type, weight)
SELECT $1, 'artifact:' || n, 'artifact:' || (n::bigint * (k + 1) * 7919 + k) % $4::integer, 'links', 1.0 / (k + 1)
FROM generate_series($2::integer, $3::integer - 1) AS n, generate_series(0, 4) AS k
ON CONFLICT DO NOTHING
"""


class Size(NamedTuple):
    """Memories of the large tenant, and how many of them have an embedding."""

    rows: int
    vectors: int


def word(rank: int) -> str:
    """Return a word of the vocabulary, of three made-up syllables; the most common has rank 1."""
    consonants, vowels, syllables = "bdfgklmnprstvz", "aeiou", ""
    for _ in range(3):
        rank, place = divmod(rank, len(consonants) * len(vowels))
        syllables += consonants[place // len(vowels)] + vowels[place % len(vowels)]
    return syllables


def small_memories() -> list[Memory]:
    """Return the memories of the small tenant; those of the large one are alike."""
    choose = random.Random(7)
    return [
        Memory(
            id=f"m-{n}",
            text=" ".join(word(int(VOCABULARY ** choose.random())) for _ in range(SHORTEST + n % 23)),
            session_id=f"session-{n // SESSION}",
            user_id=f"user-{n // SESSION % USERS}" if n % 5 else None,
            speaker=f"Speaker{n % 3}",
            time=BEGINNING + timedelta(minutes=n),
            position=n % SESSION,
        )
        for n in range(MEMORIES)
    ]


async def prepared(server: str, size: Size) -> tuple[str, str]:
    """Make what an earlier run has not left in the server; return the URLs of both databases."""
    alone, beside = (urlsplit(server)._replace(path=f"/{name}").geturl() for name in ("alone", "beside"))
    for url, large in ((alone, None), (beside, size)):
        name = urlsplit(url).path.strip("/")
        async with connected(server) as connection:
            if not await connection.fetchval("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name):
                await connection.execute(f"CREATE DATABASE {name}")
        if await _is_loaded(url, large):
            await apply(url)
            continue
        async with connected(server) as connection:
            await connection.execute(f"DROP DATABASE {name}")
            await connection.execute(f"CREATE DATABASE {name}")
        await apply(url)
        await _load_small(url)
        async with connected(url) as connection:
            if large is not None:
                await _load_large(connection, large)
            await connection.execute("VACUUM ANALYZE")  # as the server does by itself within a minute
            await connection.execute("CREATE TABLE loaded ()")
    return alone, beside


async def _is_loaded(url: str, large: Size | None) -> bool:
    """Return whether an earlier run has loaded all of it."""
    async with connected(url) as connection:
        if await connection.fetchval("SELECT to_regclass('loaded') IS NULL"):
            return False
        if large is None:
            return True
        counted = "SELECT memories FROM context_memory_totals WHERE tenant_id = $1"
        embedded = "SELECT count(*) FROM context_memory_vectors WHERE tenant_id = $1"
        found = await connection.fetchval(counted, LARGE), await connection.fetchval(embedded, LARGE)
        return found == large


async def _load_small(url: str) -> None:
    memory = PostgresMemory(url, RandomEmbedder(), timeout=PATIENCE)
    await memory.remember(SMALL, small_memories())
    await memory.embed_missing(SMALL)
    await memory.close()
    async with connected(url) as connection:
        await _load_knowledge(connection, SMALL, MEMORIES)


async def _load_large(connection: asyncpg.Connection, size: Size) -> None:
    """Load past the store's functions, which would take hours, with their triggers and all indexes."""
    embedder = RandomEmbedder()
    await connection.execute("SELECT setseed(0.5)")
    await connection.execute("CREATE TEMP TABLE vocabulary (rank integer PRIMARY KEY, word text NOT NULL)")
    words = [(rank, word(rank)) for rank in range(1, VOCABULARY + 1)]
    await connection.copy_records_to_table("vocabulary", records=words, columns=("rank", "word"))
    await connection.execute("ANALYZE vocabulary")
    alike = (SHORTEST, VOCABULARY, SESSION, USERS, BEGINNING, embedder.name)
    for start in progress(range(0, size.rows, AT_ONCE), f"loading {size.rows:,} memories"):
        await connection.execute(REMEMBER, LARGE, start, min(start + AT_ONCE, size.rows), *alike)
    await connection.execute(PEND, LARGE, size.vectors, size.rows)
    await _load_knowledge(connection, LARGE, size.rows // 10)
    for start in progress(range(0, size.vectors, AT_ONCE), f"loading {size.vectors:,} embeddings"):
        places = range(start, min(start + AT_ONCE, size.vectors))
        rows = [(LARGE, f"m-{n}", embedder.name, await embedder.embed_query(f"m-{n}")) for n in places]
        await copy_vectors(connection, rows)
    print(f"  indexing {size.vectors:,} embeddings …", file=sys.stderr)
    await index_vectors(connection, LARGE)


async def _load_knowledge(connection: asyncpg.Connection, tenant: str, artifacts: int) -> None:
    for start in progress(range(0, artifacts, AT_ONCE), f"loading {artifacts:,} artifacts"):
        end = min(start + AT_ONCE, artifacts)
        await connection.execute(KNOW, tenant, start, end, USERS, MODULES, BEGINNING)
        await connection.execute(LINK, tenant, start, end, artifacts)


# The searches that are measured


@dataclass(frozen=True)
class Question:
    """What is asked of any tenant; every name and ref is one that the small one has."""

    text: str
    embedding: list[float]
    user_id: str
    session_id: str
    module_id: str
    refs: tuple[str, ...]


async def questions(count: int, seed: int) -> list[Question]:
    choose, embedder, memories = random.Random(seed), RandomEmbedder(), small_memories()
    return [
        Question(
            text=" ".join(choose.sample(choose.choice(memories).text.split(), 6)),
            embedding=await embedder.embed_query(f"{seed} {n}"),
            user_id=f"user-{choose.randrange(USERS)}",
            session_id=f"session-{choose.randrange(MEMORIES // SESSION)}",
            module_id=f"module-{choose.randrange(MODULES)}",
            refs=tuple(f"artifact:{choose.randrange(MEMORIES)}" for _ in range(20)),
        )
        for n in range(count)
    ]


@dataclass(frozen=True)
class Stores:
    """The stores of one database, each over one connection."""

    by_words: PostgresMemory
    by_both: PostgresMemory
    known: KnowledgeStore


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Stores]:
    stores = Stores(
        PostgresMemory(url, timeout=PATIENCE, connections=1),
        PostgresMemory(url, RandomEmbedder(), timeout=PATIENCE, connections=1),
        KnowledgeStore(PostgresDatabase(url, timeout=PATIENCE, connections=1)),
    )
    try:
        yield stores
    finally:
        for store in (stores.by_words, stores.by_both, stores.known):
            await store.close()


Query = Callable[[Question], MemoryQuery]


def _both(asked: Question, where: MemoryFilter | None = None) -> MemoryQuery:
    return MemoryQuery(asked.text, embedding=asked.embedding, filter=where or MemoryFilter())


def _users(asked: Question) -> MemoryFilter:
    return MemoryFilter(user_id=asked.user_id, with_unowned=True)


BY_WORDS: Final[Mapping[str, Query]] = {
    "by words": lambda asked: MemoryQuery(asked.text),
    "the newest of a user": lambda asked: MemoryQuery("", filter=_users(asked)),
}
BY_BOTH: Final[Mapping[str, Query]] = {
    "by meaning": lambda asked: MemoryQuery("", embedding=asked.embedding),
    "by both": _both,
    "by both, of a user and nobody": lambda asked: _both(asked, _users(asked)),
    "by both, of a session": lambda asked: _both(asked, MemoryFilter(session_id=asked.session_id)),
    # A document's passages are memories that stand alone, in a space that is to the database another tenant.
    "by both, 45 passages": lambda asked: MemoryQuery(
        asked.text, 45, embedding=asked.embedding, standalone=True, with_texts=False
    ),
}


async def _artifacts(known: KnowledgeStore, tenant: str, asked: Question) -> list[Any]:
    return await known.matching(tenant, ArtifactFilter(modules=(asked.module_id,), tags=("tag-5",)), 30)


async def _graph(known: KnowledgeStore, tenant: str, asked: Question) -> list[Any]:
    around = await known.neighbourhood(tenant, asked.refs)
    return [*around.nodes, *await known.nodes(tenant, [node.ref for node in around.nodes[:30]], 2_000)]


OF_KNOWLEDGE: Final[Mapping[str, Callable[[KnowledgeStore, str, Question], Awaitable[list[Any]]]]] = {
    "artifacts of a module": _artifacts,
    "nodes around 20 artifacts": _graph,
}
SEARCHES: Final = (*BY_WORDS, *BY_BOTH, *OF_KNOWLEDGE)


async def timed(stores: Stores, name: str, tenant: str, asked: Question) -> tuple[float, list[Any]]:
    """Return the milliseconds of a search, and what it found."""
    started = time.perf_counter()
    if name in OF_KNOWLEDGE:
        found = await OF_KNOWLEDGE[name](stores.known, tenant, asked)
    else:
        memory, queries = (stores.by_words, BY_WORDS) if name in BY_WORDS else (stores.by_both, BY_BOTH)
        found = [one.memory.id for one in await memory.search(tenant, queries[name](asked))]
    return 1000 * (time.perf_counter() - started), found


@contextmanager
def searched_meanwhile(url: str) -> Iterator[None]:
    """Let another process make all searches of the large tenant, one after the other, without a pause."""
    processes = multiprocessing.get_context("spawn")
    begun, ended = processes.Event(), processes.Event()
    process = processes.Process(target=_search, args=(url, begun, ended), daemon=True)
    process.start()
    try:
        if not begun.wait(PATIENCE):
            raise TimeoutError("the other client does not search")
        yield
        if not process.is_alive():
            raise ChildProcessError("the other client ended while searches were measured")
    finally:
        ended.set()
        process.join(30)
        process.kill()


def _search(url: str, begun: Event, ended: Event) -> None:
    async def search() -> None:
        asked = await questions(200, seed=9)
        async with opened(url) as stores:
            while not ended.is_set():
                for question in asked:
                    for name in SEARCHES:
                        if not ended.is_set():
                            await timed(stores, name, LARGE, question)
                    begun.set()

    asyncio.run(search())


# Measuring

GOALS: Final = (1.2, 1.5)
"""How much longer a search may take at the median and at the 95th percentile beside the large tenant."""

WARM_UP: Final = 20


async def measure(report: Report, kept: Path | None, size: Size, count: int) -> None:
    with database(kept) as server:
        alone_url, beside_url = await prepared(server, size)
        asked = await questions(WARM_UP + count, seed=8)
        async with opened(alone_url) as alone, opened(beside_url) as beside:
            for name in SEARCHES:  # as a server's connections do, which keep plans, these serve both tenants
                for question in asked[:WARM_UP]:
                    await timed(beside, name, LARGE, question)
            for name in SEARCHES:
                report.add(await compared(name, name, alone, beside, asked))
            with searched_meanwhile(beside_url):
                for name in SEARCHES:
                    report.add(await compared(f"{name}; the large one is searched", name, alone, beside, asked))
            for name in SEARCHES:
                times = [(await timed(beside, name, LARGE, question))[0] for question in asked]
                report.add(timing(f"the large tenant itself, {name}", times[WARM_UP:]))
    report.notes += [
        f"The large tenant has {size.rows:,} memories, embeddings of {size.vectors:,} of them, "
        f"{size.rows // 10:,} artifacts and {size.rows // 2:,} edges.",
        f"The small one has {MEMORIES:,} memories, all embedded, as many artifacts and {5 * MEMORIES:,} edges.",
        f"Load average {os.getloadavg()[0]:.1f} at the end.",
    ]


async def compared(what: str, name: str, alone: Stores, beside: Stores, asked: Sequence[Question]) -> Line:
    """Search the small tenant where it is alone and where it is not, in turns, so that what else the machine does
    slows both."""
    times: tuple[list[float], list[float]] = ([], [])
    different = 0
    for turn, question in enumerate(asked):
        answers = []
        for place in (0, 1) if turn % 2 else (1, 0):
            taken, found = await timed((alone, beside)[place], name, SMALL, question)
            times[place].append(taken)
            answers.append(found)
        different += answers[0] != answers[1]
    before, after = (p50_p95(some[WARM_UP:]) for some in times)
    ratios = [now / then for now, then in zip(after, before, strict=True)]
    other = f", {different} ANSWERS DIFFER" if different else ""
    return Line(
        f"{what}, p50 / p95",
        f"× {ratios[0]:.2f} / {ratios[1]:.2f} ({after[0]:.1f} / {after[1]:.1f} ms{other})",
        goal=f"× {GOALS[0]:g} / {GOALS[1]:g}",
        reached=ratios[0] <= GOALS[0] and ratios[1] <= GOALS[1] and not different,
        baseline=f"alone {before[0]:.1f} / {before[1]:.1f} ms",
        values={"p50_ms": after[0], "p95_ms": after[1], "p50_ratio": ratios[0], "p95_ratio": ratios[1]},
    )


def main() -> int:
    asked = parser(__doc__)
    asked.add_argument("--rows", type=int, metavar="N", help="memories of the large tenant (1000000)")
    asked.add_argument("--vectors", type=int, metavar="N", help="how many of them have an embedding (100000)")
    asked.add_argument("--count", type=int, default=300, metavar="N", help="searches of each kind (300)")
    asked.add_argument("--quick", action="store_true", help="a tenth of rows and vectors")
    asked.add_argument("--database", type=Path, metavar="FOLDER", help="keep the databases there for the next run")
    options = asked.parse_args()
    rows = options.rows or (100_000 if options.quick else 1_000_000)
    size = Size(rows, min(rows, options.vectors or (10_000 if options.quick else 100_000)))

    def measured(report: Report) -> None:
        asyncio.run(measure(report, options.database, size, options.count))

    return run("A small tenant beside a large one", measured, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
