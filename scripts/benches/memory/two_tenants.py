"""Two databases of one server: in one a small tenant is alone, in the other the same one is beside a large one."""

from __future__ import annotations

import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

import asyncpg

from context_builder.database.migrations import apply
from context_builder.memory.memory import Memory
from context_builder.memory.postgres import PostgresMemory
from scripts.benches.memory.random_embeddings import DIMENSIONS, TextEmbedder
from scripts.benches.shared.progress import progress

SMALL: Final = "small"
LARGE: Final = "large"

MEMORIES: Final = 1_000
"""Of the small tenant, as many artifacts, and five times as many edges."""

VOCABULARY: Final = 50_000
SESSION: Final = 50
"""Memories of a session."""

USERS: Final = 20
MODULES: Final = 10
BEGINNING: Final = datetime(2025, 1, 1, tzinfo=UTC)
PATIENCE: Final = 3600.0
_AT_ONCE: Final = 10_000

# The n-th word comes once where the first comes n times. Every fifth memory is nobody's.
_REMEMBER: Final = """
INSERT INTO context_memories (tenant_id, id, kind, session_id, user_id, speaker, said_at, position, text, embedder)
SELECT $1, 'm-' || n, 'message', 'session-' || n / $6::integer,
       CASE WHEN n % 5 > 0 THEN 'user-' || n / $6::integer % $7::integer END,
       'Speaker' || n % 3, $8::timestamptz + n * interval '1 minute', n % $6::integer, string_agg(v.word, ' '), $9
FROM (
    SELECT n, floor(power($5::float8, random()))::integer AS rank
    FROM generate_series($2::integer, $3::integer - 1) AS n, generate_series(1, $4::integer + n % 23) OFFSET 0
) AS r JOIN vocabulary AS v USING (rank) GROUP BY n
"""
_PEND: Final = """
INSERT INTO context_memory_pending (tenant_id, id)
SELECT $1, 'm-' || n FROM generate_series($2::integer, $3::integer - 1) AS n
"""
_SHORTEST: Final = 8

_KNOW: Final = """
INSERT INTO context_artifacts (tenant_id, ref, version, kind, title, content, digest, project_id, module_id, status,
                               tags, updated_at)
SELECT $1, 'artifact:' || n, 1, 'document', 'Title ' || n, 'Content of ' || n, sha256(n::text::bytea),
       'project-' || n % $4::integer, 'module-' || n / 7 % $5::integer, 'approved',
       ARRAY['tag-' || n % 13], $6::timestamptz + n * interval '1 minute'
FROM generate_series($2::integer, $3::integer - 1) AS n
"""
_LINK: Final = """
INSERT INTO context_edges (tenant_id, from_ref, to_ref, type, weight)
SELECT $1, 'artifact:' || n, 'artifact:' || (n::bigint * (k + 1) * 7919 + k) % $4::integer, 'links', 1.0 / (k + 1)
FROM generate_series($2::integer, $3::integer - 1) AS n, generate_series(0, 4) AS k
ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True)
class Tenants:
    """The URLs of both databases, and of how many memories the large tenant's are."""

    alone: str
    beside: str
    rows: int
    vectors: int


def word(rank: int) -> str:
    """Return a word of the vocabulary, of three or four made-up syllables; the most common has rank 1."""
    consonants, vowels, syllables = "bdfgklmnprstvz", "aeiou", ""
    for _ in range(3):
        rank, place = divmod(rank, len(consonants) * len(vowels))
        syllables += consonants[place // len(vowels)] + vowels[place % len(vowels)]
    return syllables


def text(choose: random.Random, words: int) -> str:
    return " ".join(word(int(VOCABULARY ** choose.random())) for _ in range(words))


def small_memories() -> list[Memory]:
    """Return the memories of the small tenant; those of the large one are alike."""
    choose = random.Random(7)
    return [
        Memory(
            id=f"m-{n}",
            text=text(choose, _SHORTEST + n % 23),
            session_id=f"session-{n // SESSION}",
            user_id=f"user-{n // SESSION % USERS}" if n % 5 else None,
            speaker=f"Speaker{n % 3}",
            time=BEGINNING + timedelta(minutes=n),
            position=n % SESSION,
        )
        for n in range(MEMORIES)
    ]


async def prepared(url: str, rows: int, vectors: int) -> Tenants:
    """Make what an earlier run has not left in the server at ``url``."""
    vectors = min(rows, vectors)
    tenants = Tenants(_named(url, "alone"), _named(url, "beside"), rows, vectors)
    for database, is_beside in ((tenants.alone, False), (tenants.beside, True)):
        await _made(url, database)
        if await _holds(database, tenants if is_beside else None):
            await apply(database)
            continue
        await _made(url, database, anew=True)
        await apply(database)
        await _load_small(database)
        if is_beside:
            await _load_large(tenants)
        async with connected(database) as connection:
            await connection.execute("VACUUM ANALYZE")  # as the server does by itself within a minute
            await connection.execute("CREATE TABLE loaded ()")
    return tenants


async def _load_small(url: str) -> None:
    memory = PostgresMemory(url, TextEmbedder(), timeout=PATIENCE)
    await memory.remember(SMALL, small_memories())
    await memory.embed_missing(SMALL)
    await memory.close()
    async with connected(url) as connection:
        await _load_knowledge(connection, SMALL, MEMORIES, 5 * MEMORIES)


async def _load_large(tenants: Tenants) -> None:
    """Load past the store's functions, which would take hours, with their triggers and all indexes."""
    embedder, rows, vectors = TextEmbedder(), tenants.rows, tenants.vectors
    async with connected(tenants.beside) as connection:
        await connection.execute("SELECT setseed(0.5)")
        await connection.execute("CREATE TEMP TABLE vocabulary (rank integer PRIMARY KEY, word text NOT NULL)")
        words = [(rank, word(rank)) for rank in range(1, VOCABULARY + 1)]
        await connection.copy_records_to_table("vocabulary", records=words, columns=("rank", "word"))
        await connection.execute("ANALYZE vocabulary")
        alike = (_SHORTEST, VOCABULARY, SESSION, USERS, BEGINNING, embedder.name)
        for start in progress(range(0, rows, _AT_ONCE), f"loading {rows:,} memories"):
            await connection.execute(_REMEMBER, LARGE, start, min(start + _AT_ONCE, rows), *alike)
        await connection.execute(_PEND, LARGE, vectors, rows)
        await _load_knowledge(connection, LARGE, rows // 10, rows // 2)
        for start in progress(range(0, vectors, _AT_ONCE), f"loading {vectors:,} embeddings"):
            embeddings = [
                (LARGE, f"m-{n}", embedder.name, await embedder.embed_query(f"m-{n}"))
                for n in range(start, min(start + _AT_ONCE, vectors))
            ]
            columns = ("tenant_id", "id", "embedder", "embedding")
            await connection.copy_records_to_table(
                "context_memory_vectors_default", records=embeddings, columns=columns
            )
        print(f"  indexing {vectors:,} embeddings …", file=sys.stderr)
        # By one process alone: several would share more memory than a container has of that kind.
        await connection.execute("SET maintenance_work_mem = '1GB'; SET max_parallel_maintenance_workers = 0")
        await connection.execute("SELECT context_memory_separate($1, $2)", LARGE, DIMENSIONS)


async def _load_knowledge(connection: asyncpg.Connection, tenant: str, artifacts: int, edges: int) -> None:
    for start in progress(range(0, artifacts, _AT_ONCE), f"loading {artifacts:,} artifacts"):
        end = min(start + _AT_ONCE, artifacts)
        await connection.execute(_KNOW, tenant, start, end, USERS, MODULES, BEGINNING)
        await connection.execute(_LINK, tenant, start, end, artifacts)


async def _made(server: str, database: str, *, anew: bool = False) -> None:
    name = urlsplit(database).path.strip("/")
    async with connected(server) as connection:
        if anew:
            await connection.execute(f"DROP DATABASE IF EXISTS {name}")
        if not await connection.fetchval("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name):
            await connection.execute(f"CREATE DATABASE {name}")


async def _holds(url: str, large: Tenants | None) -> bool:
    """Return whether an earlier run has loaded all of it."""
    async with connected(url) as connection:
        if await connection.fetchval("SELECT to_regclass('loaded') IS NULL"):
            return False
        if large is None:
            return True
        counted = "SELECT memories FROM context_memory_totals WHERE tenant_id = $1"
        embedded = "SELECT count(*) FROM context_memory_vectors WHERE tenant_id = $1"
        held = (await connection.fetchval(counted, LARGE), await connection.fetchval(embedded, LARGE))
        return held == (large.rows, large.vectors)


def _named(url: str, database: str) -> str:
    return urlsplit(url)._replace(path=f"/{database}").geturl()


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url, command_timeout=PATIENCE)
    try:
        yield connection
    finally:
        await connection.close()
