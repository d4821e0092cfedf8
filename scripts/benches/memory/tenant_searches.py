"""The searches of a tenant that are measured, and a client in a process of its own that makes them without end."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from typing import Any, Final

from context_builder.database.postgres import PostgresDatabase
from context_builder.knowledge.store import ArtifactFilter, KnowledgeStore
from context_builder.memory.memory import MemoryFilter, MemoryQuery
from context_builder.memory.postgres import PostgresMemory
from scripts.benches.memory.random_embeddings import TextEmbedder
from scripts.benches.memory.two_tenants import (
    MEMORIES,
    MODULES,
    PATIENCE,
    SESSION,
    USERS,
    small_memories,
)

WORDS: Final = 6
"""Of a question, which are among those of a memory of the small tenant."""


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
    choose, embedder, memories = random.Random(seed), TextEmbedder(), small_memories()
    return [
        Question(
            text=" ".join(choose.sample(choose.choice(memories).text.split(), WORDS)),
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
    functions = PostgresDatabase(url, timeout=PATIENCE, connections=1)
    stores = Stores(
        PostgresMemory(url, timeout=PATIENCE, connections=1),
        PostgresMemory(url, TextEmbedder(), timeout=PATIENCE, connections=1),
        KnowledgeStore(functions),
    )
    try:
        yield stores
    finally:
        for store in (stores.by_words, stores.by_both, stores.known):
            await store.close()


async def _found(memory: PostgresMemory, tenant: str, query: MemoryQuery) -> list[Any]:
    return [one.memory.id for one in await memory.search(tenant, query)]


async def _fused(stores: Stores, tenant: str, asked: Question, where: MemoryFilter | None = None) -> list[Any]:
    query = MemoryQuery(asked.text, embedding=asked.embedding, filter=where or MemoryFilter())
    return await _found(stores.by_both, tenant, query)


async def _by_words(stores: Stores, tenant: str, asked: Question) -> list[Any]:
    return await _found(stores.by_words, tenant, MemoryQuery(asked.text))


async def _by_meaning(stores: Stores, tenant: str, asked: Question) -> list[Any]:
    return await _found(stores.by_both, tenant, MemoryQuery("", embedding=asked.embedding))


async def _of_a_user(stores: Stores, tenant: str, asked: Question) -> list[Any]:
    return await _fused(stores, tenant, asked, MemoryFilter(user_id=asked.user_id, with_unowned=True))


async def _of_a_session(stores: Stores, tenant: str, asked: Question) -> list[Any]:
    return await _fused(stores, tenant, asked, MemoryFilter(session_id=asked.session_id))


async def _newest(stores: Stores, tenant: str, asked: Question) -> list[Any]:
    return await _found(
        stores.by_words, tenant, MemoryQuery("", filter=MemoryFilter(user_id=asked.user_id, with_unowned=True))
    )


async def _passages(stores: Stores, tenant: str, asked: Question) -> list[Any]:
    """A document's passages are memories that stand alone, in a space that is to the database another tenant."""
    query = MemoryQuery(asked.text, 45, embedding=asked.embedding, standalone=True, with_texts=False)
    return await _found(stores.by_both, tenant, query)


async def _artifacts(stores: Stores, tenant: str, asked: Question) -> list[Any]:
    return await stores.known.matching(tenant, ArtifactFilter(modules=(asked.module_id,), tags=("tag-5",)), 30)


async def _graph(stores: Stores, tenant: str, asked: Question) -> list[Any]:
    around = await stores.known.neighbourhood(tenant, asked.refs)
    return [*around.nodes, *await stores.known.nodes(tenant, [node.ref for node in around.nodes[:30]], 2_000)]


SEARCHES: Final[Mapping[str, Callable[[Stores, str, Question], Awaitable[list[Any]]]]] = {
    "by words": _by_words,
    "by meaning": _by_meaning,
    "by both": _fused,
    "by both, of a user and nobody": _of_a_user,
    "by both, of a session": _of_a_session,
    "the newest of a user": _newest,
    "by both, 45 passages": _passages,
    "artifacts of a module": _artifacts,
    "around 20 artifacts": _graph,
}


async def timed(stores: Stores, name: str, tenant: str, asked: Question) -> tuple[float, list[Any]]:
    """Return the milliseconds of a search, and what it found."""
    started = time.perf_counter()
    found = await SEARCHES[name](stores, tenant, asked)
    return 1000 * (time.perf_counter() - started), found


@contextmanager
def searched_meanwhile(url: str, tenant: str) -> Iterator[None]:
    """Let another process make all searches of the tenant, one after the other, without a pause."""
    processes = multiprocessing.get_context("spawn")
    begun, ended = processes.Event(), processes.Event()
    process = processes.Process(target=_search, args=(url, tenant, begun, ended), daemon=True)
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


def _search(url: str, tenant: str, begun: Event, ended: Event) -> None:
    asyncio.run(_search_without_end(url, tenant, begun, ended))


async def _search_without_end(url: str, tenant: str, begun: Event, ended: Event) -> None:
    asked = await questions(200, seed=9)
    async with opened(url) as stores:
        while not ended.is_set():
            for question in asked:
                for name in SEARCHES:
                    await timed(stores, name, tenant, question)
                    if ended.is_set():
                        return
                begun.set()
