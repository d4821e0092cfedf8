"""How quick packages are over HTTP, where much is known: 200,000 memories, 50,000 nodes, 250,000 edges."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import orjson

from context_builder.database.migrations import apply
from context_builder.engines.embeddings import MODEL
from context_builder.engines.engine import LOOPBACK
from context_builder.errors import DatabaseUnavailable
from context_builder.knowledge.node import KnowledgeNode
from context_builder.knowledge.request import ContextBuildRequest, MetadataRetrieval, Scope
from context_builder.knowledge.service import RETRIEVAL_TIME, PackageService
from context_builder.knowledge.store import document_space
from context_builder.memory.memory import Memory
from context_builder.memory.sql_memory import PostgresMemory
from scripts.benches.harness.laboratory import TRACE, Options, agent, laboratory
from scripts.benches.harness.memory import PATIENCE, RandomEmbedder, connected, database, load, serve_random_embeddings
from scripts.benches.harness.report import Line, Report, p50_p95, progress, timing
from tests.services.api_server import ApiServer
from tests.services.redis_server import RedisServer

TENANT: Final = "lab"
SAID: Final = 150_000
DOCUMENTS: Final = 50_000
EDGES: Final = 250_000
INTENTS: Final = 60
AT_ONCE: Final = 16
WORDS: Final = 4_000
LOADED_AT_ONCE: Final = 5_000
WARMING: Final = 120.0
"""Seconds in which a database that was started just now has read what is searched."""

STEADY: Final = 0.97
"""The database is warm once a round of builds takes more than this share of the time of the round before."""

Package = dict[str, Any]


class HttpAnswer(NamedTuple):
    """The status line and headers, and the body."""

    head: bytes
    body: bytes


class HttpConnection:
    """Asks a server on loopback that tells the length of every answer, in a tenth of the time that a client for all
    purposes takes. Raises :class:`AssertionError` unless it answers with 200."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, key: str) -> None:
        self._reader = reader
        self._writer = writer
        self._head = f"Host: {LOOPBACK}:{port}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"

    @classmethod
    @asynccontextmanager
    async def opened(cls, server: ApiServer) -> AsyncIterator[Self]:
        reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
        try:
            yield cls(reader, writer, server.port, server.key())
        finally:
            writer.close()

    async def get(self, path: str) -> HttpAnswer:
        return await self._ask(f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode())

    async def build(self, intent: str) -> Package:
        body = orjson.dumps({"intent": intent, "tokenBudget": 4_000})
        head = f"POST /knowledge/context/build HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n"
        package: Package = orjson.loads((await self._ask(head.encode() + body)).body)
        return package

    async def _ask(self, request: bytes) -> HttpAnswer:
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0]
        body = await self._reader.readexactly(int(length))
        assert head.startswith(b"HTTP/1.1 200 "), head + body
        return HttpAnswer(head, body)


def speed(report: Report, options: Options) -> None:
    asyncio.run(_measure(report, options))


async def _measure(report: Report, options: Options) -> None:
    part = options.part
    with database(options.database) as url, tempfile.TemporaryDirectory(prefix="context-builder-packages-") as folder:
        await apply(url)
        if not await _is_loaded(url, part):
            await _load(url, part)
        (Path(folder) / "redis").mkdir()
        redis = RedisServer(Path(folder) / "redis")
        redis.start()
        try:
            with serve_random_embeddings() as embeddings:
                embedded = {"embedding_model": MODEL, "embedding_base_url": embeddings, "embedding_api_key": "none"}
                settings = {**embedded, "retrieval_time": RETRIEVAL_TIME}
                server = await asyncio.to_thread(ApiServer, Path(folder), redis.url, url, **settings)
                try:
                    await _over_http(server, report, max(20, 300 // part))
                finally:
                    server.close()
        finally:
            redis.kill()
        await _hanging(url, report, max(20, 100 // part))
    known = f"{(SAID + DOCUMENTS) // part:,} memories, {DOCUMENTS // part:,} nodes, {EDGES // part:,} edges"
    report.notes.append(f"Packages: {known}; the server and who asks it are processes of their own on the same cores.")


async def _over_http(server: ApiServer, report: Report, count: int) -> None:
    choose = random.Random(4)
    intents = [_text(choose, 6) for _ in range(INTENTS)]
    async with AsyncExitStack() as stack:

        async def opened() -> HttpConnection:
            return await stack.enter_async_context(HttpConnection.opened(server))

        client = await opened()
        warm, reduced = await _warmed(client, intents, choose)
        report.notes.append(f"{reduced} packages were reduced while caches were cold.")
        one = await _times(count, lambda: client.build(choose.choice(intents)))
        what = f"POST …/build, one at a time ({len(warm[-1]['sources'])} sources)"
        report.add(timing(what, one, (40, 70)))
        again = [await client.build(intent) for intent in intents]
        reasons = Counter(reason for package in again for reason in package["coverage"]["reasons"])
        report.notes += [f"Reduced once they were warm, {often} of {INTENTS}: {why}" for why, often in reasons.items()]
        each, others = count // AT_ONCE + 1, [await opened() for _ in range(AT_ONCE)]
        started = time.perf_counter()

        async def build_each(other: HttpConnection) -> list[Package]:
            return [await other.build(choose.choice(intents)) for _ in range(each)]

        built = [one for some in await asyncio.gather(*map(build_each, others)) for one in some]
        rate = AT_ONCE * each / (time.perf_counter() - started)
        whole = sum(not one["coverage"]["reduced"] for one in built)
        what = f"POST …/build, {AT_ONCE} at once ({whole} of {len(built)} whole)"
        report.add(Line(what, f"{rate:.0f} requests/s", "40/s", rate >= 40))
        path = f"/knowledge/context/{warm[-1]['contextPackageId']}"
        fresh = await opened()  # the server closes one that asks nothing for seconds
        report.add(timing("GET from the cache", await _times(count, lambda: fresh.get(path)), (1.5, 4)))
        assert b"x-context-cache: hit" in (await fresh.get(path)).head.lower()


async def _warmed(client: HttpConnection, intents: Sequence[str], choose: random.Random) -> tuple[list[Package], int]:
    """Build packages, also of other intents, until that gets no quicker; return the last, and how many were reduced.

    A server that was started just now reads from disk what one that has run for an hour has in memory.
    """
    started, reduced, before = time.monotonic(), 0, float("inf")
    while True:
        began = time.monotonic()
        for _ in intents:
            await client.build(_text(choose, 6))
        warm = [await client.build(intent) for intent in intents]
        reduced += sum(one["coverage"]["reduced"] for one in warm)
        now = time.monotonic()
        is_whole = not warm[-1]["coverage"]["reduced"]
        if is_whole and (now - began > STEADY * before or now - started > WARMING):
            return warm, reduced
        assert now - started < WARMING, warm[-1]["coverage"]
        before = now - began


async def _hanging(url: str, report: Report, count: int) -> None:
    """A metadata index that never answers, in the process; the graph and the vectors as they are."""
    choose = random.Random(5)
    async with laboratory(url) as lab:
        memory = PostgresMemory(url, RandomEmbedder(MODEL), timeout=PATIENCE)  # under whose name vectors are stored

        async def build(service: PackageService) -> None:
            request = ContextBuildRequest(intent=_text(choose, 6), token_budget=4_000, scope=Scope(project_id="p1"))
            await service.build(agent(TENANT), request, TRACE)

        well = lab.service(memory, time=RETRIEVAL_TIME)
        await _times(20, lambda: build(well))
        usual = await _times(count, lambda: build(well))
        hung = []
        for _ in range(count // 4):
            ill = lab.service(memory, time=RETRIEVAL_TIME, index=_Hanging())  # before its breaker opens
            hung += await _times(4, partial(build, ill))
        added, limit = p50_p95(hung)[1] - p50_p95(usual)[1], 1000 * RETRIEVAL_TIME + 5
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


def _text(choose: random.Random, words: int) -> str:
    """Words as common as words are: the n-th comes once where the first comes n times."""
    return " ".join(f"word{int(WORDS ** choose.random())}" for _ in range(words))


def _memories(count: int, kind: str, words: int) -> Iterator[Memory]:
    choose = random.Random(words)
    for place in range(count):
        session, position = f"session-{place // 400}", place % 400
        yield Memory(f"{kind}-{place}", _text(choose, words), kind, session_id=session, position=position)


async def _is_loaded(url: str, part: int) -> bool:
    """Return whether an earlier run has loaded as much. Edges come last, all at once."""
    async with connected(url) as connection:
        wanted = "SELECT EXISTS (SELECT FROM context_edges) AND (SELECT count(*) FROM context_artifacts) = $1"
        return bool(await connection.fetchval(wanted, DOCUMENTS // part))


async def _load(url: str, part: int) -> None:
    """Load artifacts and edges past the store's functions, which would take an hour, and what they are found by."""
    embedder, count = RandomEmbedder(MODEL), DOCUMENTS // part
    await load(url, embedder, TENANT, list(_memories(SAID // part, "message", 15)))
    passages = [
        replace(one, session_id=f"artifact:{place}", position=0, metadata={"ref": f"artifact:{place}"})
        for place, one in enumerate(_memories(count, "document", 60))
    ]
    await load(url, embedder, document_space(TENANT), passages)
    choose = random.Random(6)
    async with connected(url) as connection:
        columns = ("tenant_id", "ref", "version", "kind", "title", "content", "digest", "project_id", "status")
        for start in progress(range(0, count, LOADED_AT_ONCE), f"loading {count:,} artifacts"):
            rows = [
                (TENANT, f"artifact:{place}", 1, "document", f"Title {place}", one.text,
                 sha256(one.text.encode()).digest(), f"p{place % 200}", "approved")
                for place, one in enumerate(passages[start : start + LOADED_AT_ONCE], start)
            ]  # fmt: skip
            await connection.copy_records_to_table("context_artifacts", records=rows, columns=columns)
        ends = {(choose.randrange(count), int(count ** choose.random()) % count) for _ in range(EDGES // part)}
        edges = [(TENANT, f"artifact:{one}", f"artifact:{other}", "links") for one, other in ends if one != other]
        named = ("tenant_id", "from_ref", "to_ref", "type")
        await connection.copy_records_to_table("context_edges", records=edges, columns=named)
        await connection.execute("VACUUM ANALYZE")
