"""How quick packages are over HTTP, where much is known: 200,000 memories, 50,000 nodes, 250,000 edges."""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import asyncpg
import orjson

from context_builder.database.migrations import apply
from context_builder.engines.embeddings import MODEL
from context_builder.errors import DatabaseUnavailable
from context_builder.knowledge.node import KnowledgeNode
from context_builder.knowledge.request import ContextBuildRequest, MetadataRetrieval, Scope
from context_builder.knowledge.service import RETRIEVAL_TIME
from context_builder.knowledge.store import document_space
from context_builder.knowledge.weights import PackageWeights
from context_builder.memory.memory import Memory
from context_builder.memory.postgres import PostgresMemory
from context_builder.tracing import TraceContext
from scripts.benches.knowledge.laboratory import agent, laboratory
from scripts.benches.knowledge.options import Options
from scripts.benches.memory.random_embeddings import RandomEmbedder, serve_random_embeddings
from scripts.benches.memory.stage import database
from scripts.benches.memory.turn_time import load
from scripts.benches.shared.http_connection import HttpConnection
from scripts.benches.shared.progress import progress
from scripts.benches.shared.report import Line, Report, p95
from tests.services.api_server import ApiServer
from tests.services.redis_server import RedisServer

TENANT: Final = "lab"
SAID: Final = 150_000
DOCUMENTS: Final = 50_000
EDGES: Final = 250_000
INTENTS: Final = 60
AT_ONCE: Final = 16
_TRACE: Final = TraceContext("0" * 31 + "1", "0" * 15 + "1")
_WORDS: Final = 4_000
_LOADED_AT_ONCE: Final = 5_000
_WARMING: Final = 120.0
"""Seconds in which a database that was started just now has read what is searched."""
_STEADY: Final = 0.97
"""The database is warm once a round of builds takes more than this share of the time of the round before."""


def measure_speed(report: Report, options: Options) -> None:
    asyncio.run(_measure(report, options.database, part=10 if options.quick else 1))


async def _measure(report: Report, kept: Path | None, part: int) -> None:
    with database(kept) as url, tempfile.TemporaryDirectory(prefix="context-builder-packages-") as folder:
        await apply(url)
        if not await _is_loaded(url, part):
            await _load(url, part)
        redis = RedisServer(Path(folder) / "redis")
        (Path(folder) / "redis").mkdir(exist_ok=True)
        redis.start()
        try:
            with serve_random_embeddings() as embeddings:
                embedded = {"embedding_model": MODEL, "embedding_base_url": embeddings, "embedding_api_key": "none"}
                settings = {**embedded, "retrieval_time": RETRIEVAL_TIME}
                server = await asyncio.to_thread(ApiServer, Path(folder), redis.url, url, **settings)
                try:
                    await _over_http(server, report, part)
                finally:
                    server.close()
        finally:
            redis.kill()
        await _hanging(url, report, part)
    known = f"{(SAID + DOCUMENTS) // part:,} memories, {DOCUMENTS // part:,} nodes, {EDGES // part:,} edges"
    report.notes.append(f"Packages: {known}; the server and who asks it are processes of their own on the same cores.")


async def _over_http(server: ApiServer, report: Report, part: int) -> None:
    choose, count = random.Random(4), max(20, 300 // part)
    intents = [_text(choose, 6) for _ in range(INTENTS)]
    async with AsyncExitStack() as stack:

        async def opened() -> HttpConnection:
            return await stack.enter_async_context(HttpConnection.opened(server.port, server.key()))

        async def build(intent: str, client: HttpConnection) -> dict[str, Any]:
            asked = orjson.dumps({"intent": intent, "tokenBudget": 4_000})
            package: dict[str, Any] = orjson.loads((await client.post("/knowledge/context/build", asked)).body)
            return package

        client = await opened()

        warm, reduced = await _warmed(lambda intent: build(intent, client), intents, choose)
        one = await _times(count, lambda: build(choose.choice(intents), client))
        report.add(_line(f"POST …/build, one at a time ({len(warm[-1]['sources'])} sources)", one, 40, 70))
        report.notes.append(f"{reduced} packages were reduced while caches were cold.")
        again = [await build(intent, client) for intent in intents]
        reasons = Counter(reason for one in again for reason in one["coverage"]["reasons"])
        report.notes += [f"Reduced once they were warm, {count} of {INTENTS}: {one}" for one, count in reasons.items()]
        each, others = count // AT_ONCE + 1, [await opened() for _ in range(AT_ONCE)]
        started = time.perf_counter()

        async def build_each(other: HttpConnection) -> list[dict[str, Any]]:
            return [await build(choose.choice(intents), other) for _ in range(each)]

        built = [one for some in await asyncio.gather(*map(build_each, others)) for one in some]
        rate = AT_ONCE * each / (time.perf_counter() - started)
        whole = sum(not one["coverage"]["reduced"] for one in built)
        what = f"POST …/build, {AT_ONCE} at once ({whole} of {len(built)} whole)"
        report.add(Line(what, f"{rate:.0f} requests/s", "40", rate >= 40))
        path = f"/knowledge/context/{warm[-1]['contextPackageId']}"
        client = await opened()  # the server closes one that asks nothing for seconds
        fetched = await _times(count, lambda: client.get(path))
        assert b"x-context-cache: hit" in (await client.get(path)).head.lower()
        report.add(_line("GET from the cache", fetched, 1.5, 4))


async def _warmed(
    build: Callable[[str], Awaitable[dict[str, Any]]], intents: Sequence[str], choose: random.Random
) -> tuple[list[dict[str, Any]], int]:
    """Build packages, also of other intents, until that gets no quicker; return the last, and how many were reduced.

    A server that was started just now reads from disk what one that has run for an hour holds in memory.
    """
    started, reduced, before = time.monotonic(), 0, float("inf")
    while True:
        began = time.monotonic()
        for _ in intents:
            await build(_text(choose, 6))
        warm = [await build(intent) for intent in intents]
        reduced += sum(one["coverage"]["reduced"] for one in warm)
        now = time.monotonic()
        is_whole = not warm[-1]["coverage"]["reduced"]
        if is_whole and (now - began > _STEADY * before or now - started > _WARMING):
            return warm, reduced
        assert now - started < _WARMING, warm[-1]["coverage"]
        before = now - began


async def _hanging(url: str, report: Report, part: int) -> None:
    """A metadata index that never answers, in the process; the graph and the vectors as they are."""
    choose, count = random.Random(5), max(20, 100 // part)
    embedder = RandomEmbedder()
    embedder.name = MODEL  # under which vectors are stored
    async with laboratory(url) as lab:
        memory = PostgresMemory(url, embedder, timeout=60)
        well = lab.service(memory, PackageWeights(), RETRIEVAL_TIME)
        request = ContextBuildRequest(intent="…", token_budget=4_000, scope=Scope(project_id="p1"))

        async def build(service: Any) -> None:
            await service.build(agent(TENANT), request.model_copy(update={"intent": _text(choose, 6)}), _TRACE)

        await _times(20, lambda: build(well))
        usual = await _times(count, lambda: build(well))
        hung = []
        for _ in range(count // 4):
            ill = lab.service(memory, PackageWeights(), RETRIEVAL_TIME, index=_Hanging())  # before its breaker opens
            hung += await _times(4, partial(build, ill))
        added = p95(hung) - p95(usual)
        limit = 1000 * RETRIEVAL_TIME + 5
        report.add(Line("a source that hangs: added to p95", f"{added:.0f} ms", f"{limit:.0f} ms", added <= limit))


class _Hanging:
    async def find(self, tenant_id: str, asked: MetadataRetrieval, scope: Scope, longest: int) -> list[KnowledgeNode]:
        await asyncio.Event().wait()
        raise DatabaseUnavailable("never")

    async def nodes(self, tenant_id: str, refs: Sequence[str], longest: int) -> dict[str, KnowledgeNode]:
        return {}


async def _times(count: int, call: Callable[[], Awaitable[Any]]) -> list[float]:
    """Return the milliseconds of each call, one after the other."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        await call()
        times.append(1000 * (time.perf_counter() - started))
    return times


def _line(what: str, times: Sequence[float], half: float, most: float) -> Line:
    p50, slow = statistics.median(times), p95(times)
    return Line(
        f"{what}, p50 / p95 of {len(times)}",
        f"{p50:.1f} / {slow:.1f} ms",
        f"{half:g} / {most:g} ms",
        p50 <= half and slow <= most,
    )


def _text(choose: random.Random, words: int) -> str:
    """Words as common as words are: the n-th comes once where the first comes n times."""
    return " ".join(f"word{int(_WORDS ** choose.random())}" for _ in range(words))


def _memories(count: int, kind: str, words: int) -> Iterator[Memory]:
    choose = random.Random(words)
    for place in range(count):
        yield Memory(
            id=f"{kind}-{place}", text=_text(choose, words), kind=kind, session_id=f"session-{place // 400}",
            position=place % 400,
        )  # fmt: skip


async def _is_loaded(url: str, part: int) -> bool:
    """Return whether an earlier run has loaded as much. Edges come last, all at once."""
    async with _connected(url) as connection:
        wanted = "SELECT EXISTS (SELECT FROM context_edges) AND (SELECT count(*) FROM context_artifacts) = $1"
        return bool(await connection.fetchval(wanted, DOCUMENTS // part))


async def _load(url: str, part: int) -> None:
    """Load artifacts and edges past the store's functions, which would take an hour, and what they are found by."""
    embedder = RandomEmbedder()
    embedder.name = MODEL
    await load(url, embedder, TENANT, list(_memories(SAID // part, "message", 15)))
    passages = [
        replace(one, session_id=f"artifact:{place}", position=0, metadata={"ref": f"artifact:{place}"})
        for place, one in enumerate(_memories(DOCUMENTS // part, "document", 60))
    ]
    await load(url, embedder, document_space(TENANT), passages)
    choose, count = random.Random(6), DOCUMENTS // part
    async with _connected(url) as connection:
        columns = ("tenant_id", "ref", "version", "kind", "title", "content", "digest", "project_id", "status")
        for start in progress(range(0, count, _LOADED_AT_ONCE), f"loading {count:,} artifacts"):
            rows = [
                (TENANT, f"artifact:{place}", 1, "document", f"Title {place}", one.text,
                 sha256(one.text.encode()).digest(), f"p{place % 200}", "approved")
                for place, one in enumerate(passages[start : start + _LOADED_AT_ONCE], start)
            ]  # fmt: skip
            await connection.copy_records_to_table("context_artifacts", records=rows, columns=columns)
        ends = {(choose.randrange(count), int(count ** choose.random()) % count) for _ in range(EDGES // part)}
        edges = [(TENANT, f"artifact:{one}", f"artifact:{other}", "links") for one, other in ends if one != other]
        named = ("tenant_id", "from_ref", "to_ref", "type")
        await connection.copy_records_to_table("context_edges", records=edges, columns=named)
        await connection.execute("VACUUM ANALYZE")


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()
