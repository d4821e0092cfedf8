"""Memories behind the SQL functions of ``context_builder/database/sql``, whichever way these are called.

Queries are embedded in the time they have, memories once they are stored.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import count
from typing import Any, Final

import structlog

from context_builder.breaker import guard_calls_to
from context_builder.database.database import TIMEOUT, Database
from context_builder.database.postgres import CONNECTIONS, PostgresDatabase
from context_builder.errors import DatabaseError, DatabaseRejected, DatabaseUnavailable, EmbeddingsFailed
from context_builder.memory.embedder import Embedder, Embedding, without_common
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery, OnEmbedded, Rating, SearchResult
from context_builder.memory.rows import Row, as_condition, as_row, embedding_text, found_of, rating_rows, storable

log = structlog.get_logger(__name__)

_AT_ONCE: Final = 8
"""Memories that are embedded in the background between two calls of the database."""

AGAIN_SECONDS: Final = 30.0
"""Longest wait before what failed is embedded again in the background; so often is told how far that is, too."""

TRIES: Final = 20
"""So often a batch is tried in the background, before what is left is left to the next process."""

FIGURES: Final = 100_000
"""Figures of embeddings that are stored in one call: a large tenant's index takes a third of a second for them."""

_HARMLESS: Final = "probe"
"""Probe text: an embedder that refuses this too refuses everything, not the text it was given. Each probe has a number
of its own, as none is to be answered by what is remembered of another.
"""


class SqlEmbeddings:
    """Asks ``embedder`` for what memories and queries need; one that keeps failing is left alone for a while.

    ``call`` is given a function's name, the tenant and the arguments. ``query_time`` are the seconds in which a query
    is embedded, or not at all. ``at_once`` memories are embedded in the background between two calls of the database.
    ``monotonic`` tells seconds on a clock that never goes back.

    Memories that another embedder embedded, or this one with another number of dimensions, are found by words alone
    until they are embedded again, in the background, beside what is new.
    """

    def __init__(
        self,
        embedder: Embedder,
        call: Callable[..., Awaitable[list[Any]]],
        *,
        query_time: float,
        at_once: int = _AT_ONCE,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._call = call
        self._query_time = query_time
        # A server may embed in a second, which is too slow for a query and not for what is remembered.
        self._queries = guard_calls_to(embedder.name, monotonic=monotonic)
        self._memories = guard_calls_to(embedder.name, monotonic=monotonic)
        self._at_once = at_once
        self._probes = count()
        self._monotonic = monotonic
        self._supported: dict[int, bool] = {}
        self._unfilled: dict[str, None] = {}
        self._filling: asyncio.Task[None] | None = None
        self._renewing: dict[str, asyncio.Task[None]] = {}
        self._retrying: dict[str, asyncio.Task[None]] = {}
        self._dimensions: int | None = None

    async def of_query(self, text: str) -> Embedding | None:
        """Return the embedding of a query that can be stored; None, with a warning, when there is none in time."""
        if self._queries.refuses:
            return None
        try:
            with self._queries.guard():
                async with asyncio.timeout(self._query_time):
                    return await self._embedder.embed_query(text)
        except TimeoutError:
            self._warn(f"no answer within {self._query_time * 1000:.0f} ms: searched by words alone")
        except DatabaseError as error:
            self._warn(f"{error}: searched by words alone")
        return None

    async def fill(self, tenant_id: str, most: int) -> int:
        """Embed at most ``most`` of the tenant's memories without an embedding, and return how many these were.

        What an embedder that is unavailable leaves is tried again in the background.
        """
        if False in self._supported.values():
            return 0
        if self._memories.refuses:
            self._retry_in_background(tenant_id)
            return 0
        rows = await self._call("context_memory_unembedded", tenant_id, count=most)
        return await self._embed_rows(tenant_id, rows) if rows else 0

    def _retry_in_background(self, tenant_id: str) -> None:
        if (task := self._retrying.get(tenant_id)) is None or task.done():
            task = asyncio.create_task(self._fill_again(tenant_id), name="memory embeddings again")
            self._retrying[tenant_id] = task

    async def _fill_again(self, tenant_id: str) -> None:
        """Embed the memories without an embedding after waits that grow, until none is left, or tried often enough."""
        for tries in range(TRIES):
            await asyncio.sleep(min(2.0**tries, AGAIN_SECONDS))
            try:
                while await self.fill(tenant_id, self._at_once) == self._at_once:
                    pass
                if not await self._call("context_memory_unembedded", tenant_id, count=1):
                    return
            except DatabaseError as error:
                self._warn(f"{error}: the latest memories are found by words alone")
            except Exception as error:  # noqa: BLE001 nobody waits for this: the log is where its end is told
                log.error("memory.embedding_failed", embedder=self.name, kind=type(error).__name__)
                return

    async def _embed_rows(self, tenant_id: str, rows: Sequence[Row]) -> int:
        """Embed these memories, and return how many there are; 0 with a warning where that fails."""
        try:
            with self._memories.guard():
                embeddings = await self._embedded([_text(row) for row in rows])
        except DatabaseError as error:
            self._warn(f"{error}: {len(rows)} memories are found by words alone until it answers")
            if isinstance(error, DatabaseUnavailable):
                self._retry_in_background(tenant_id)
            return 0
        dimensions = max(map(len, embeddings))
        if dimensions and not await self._is_supported(tenant_id, dimensions):
            return 0
        self._dimensions = dimensions or self._dimensions
        made = [
            {"id": row["id"], "digest": row["digest"], "embedding": embedding}
            for row, embedding in zip(rows, embeddings, strict=True)
        ]
        at_once = max(1, FIGURES // max(dimensions, 1))
        try:
            for start in range(0, len(made), at_once):
                some = made[start : start + at_once]
                await self._call("context_memory_embed", tenant_id, by_embedder=self.name, embeddings=some)
        except DatabaseRejected as error:  # no numbers, or too large ones; what is remembered is there all the same
            self._warn(f"{error}: {len(rows)} memories are found by words alone")
            return 0
        return len(made)

    def renew_in_background(self, tenant_id: str) -> None:
        """Embed again what a query of now cannot be compared with, once for each tenant that is written to."""
        if self._dimensions is not None and tenant_id not in self._renewing:
            task = asyncio.create_task(self._renew_and_tell(tenant_id), name="memory re-embedding")
            self._renewing[tenant_id] = task

    async def renew(self, tenant_id: str, tries: int = 1) -> int:
        """Embed again what a query of now cannot be compared with, and return how many memories that were.

        What fails is tried ``tries`` times, and then left.
        """
        total = await self._count_outdated(tenant_id)
        if not total:
            return 0
        dimensions = self._dimensions or len((await self._embedder.embed([_HARMLESS]))[0])
        if not await self._is_supported(tenant_id, dimensions):
            return 0
        which = {"by_embedder": self.name, "dimensions": dimensions, "count": self._at_once}
        log.info("memory.reembedding", embedder=self.name, dimensions=dimensions, memories=total)
        after, done, told_at = "", 0, self._monotonic()
        while rows := await self._call("context_memory_outdated", tenant_id, **which, after=after):
            if not await self._embed_patiently(tenant_id, rows, tries):
                return done
            after, done = rows[-1]["id"], done + len(rows)
            if self._monotonic() - told_at >= AGAIN_SECONDS:
                told_at = self._monotonic()
                log.info("memory.reembedding", embedder=self.name, done=done, memories=total)
        log.info("memory.reembedded", embedder=self.name, memories=done)
        return done

    async def _embed_patiently(self, tenant_id: str, rows: Sequence[Row], tries: int) -> bool:
        for _ in range(tries - 1):
            if await self._embed_rows(tenant_id, rows):
                return True
            await asyncio.sleep(AGAIN_SECONDS)
        return bool(await self._embed_rows(tenant_id, rows))

    async def _count_outdated(self, tenant_id: str) -> int:
        which = {"by_embedder": self.name, "dimensions": self._dimensions}
        return int((await self._call("context_memory_outdated_count", tenant_id, **which))[0])

    def fill_in_background(self, tenant_id: str) -> None:
        """Embed all of the tenant's memories without an embedding, while others go on."""
        self._unfilled[tenant_id] = None
        if self._filling is None or self._filling.done():
            self._filling = asyncio.create_task(self._fill_all(), name="memory embeddings")

    async def close(self) -> None:
        under_way = [
            task for task in (self._filling, *self._renewing.values(), *self._retrying.values()) if task is not None
        ]
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        await self._embedder.close()

    async def _fill_all(self) -> None:
        while self._unfilled:
            tenant_id = next(iter(self._unfilled))
            del self._unfilled[tenant_id]  # what is remembered from now on puts it back
            try:
                while await self.fill(tenant_id, self._at_once) == self._at_once:
                    pass
                self.renew_in_background(tenant_id)
            except DatabaseError as error:
                self._warn(f"{error}: the latest memories are found by words alone until more is remembered")
            except Exception as error:  # noqa: BLE001 nobody waits for this: the log is where its end is told
                log.error("memory.embedding_failed", embedder=self.name, kind=type(error).__name__)

    async def _renew_and_tell(self, tenant_id: str) -> None:
        try:
            await self.renew(tenant_id, TRIES)
        except DatabaseError as error:
            del self._renewing[tenant_id]  # it is tried again when more is remembered
            self._warn(f"{error}: what another embedder embedded is found by words alone")
        except Exception as error:  # noqa: BLE001 nobody waits for this: the log is where its end is told
            log.error("memory.embedding_failed", embedder=self.name, kind=type(error).__name__)

    async def _embedded(self, texts: Sequence[str]) -> list[Embedding]:
        """Return the texts' embeddings; an empty one, for good, where the embedder refuses a text and takes others."""
        try:
            return await self._embedder.embed(texts)
        except (DatabaseRejected, EmbeddingsFailed):
            if len(texts) == 1:
                return [await self._embedded_at_last(texts)]
        middle = len(texts) // 2
        return [*await self._embedded(texts[:middle]), *await self._embedded(texts[middle:])]

    async def _embedded_at_last(self, texts: Sequence[str]) -> Embedding:
        """Return the embedding of a lone text that an embedder did not embed, if it does now; an empty one, for good,
        if it embeds another.
        """
        await self._embedder.embed([f"{_HARMLESS} {next(self._probes)}"])
        try:
            return (await self._embedder.embed(texts))[0]
        except (DatabaseRejected, EmbeddingsFailed):
            self._warn("a text was refused: it is found by words alone")
            return []

    async def _is_supported(self, tenant_id: str, dimensions: int) -> bool:
        """Return whether the database can search embeddings of so many dimensions; if not, that is said once."""
        if dimensions not in self._supported:
            supported = bool((await self._call("context_memory_prepare", tenant_id, dimensions=dimensions))[0])
            self._supported[dimensions] = supported
            if not supported:
                log.warning("memory.embeddings_unsupported", embedder=self.name, dimensions=dimensions)
        return self._supported[dimensions]

    def _warn(self, reason: str) -> None:
        log.warning("memory.embedding_failed", embedder=self.name, reason=reason)


def _text(row: Row) -> str:
    said_at = datetime.fromisoformat(row["said_at"]) if row["said_at"] else None
    return embedding_text(Memory(row["id"], row["text"], speaker=row["speaker"], time=said_at))


QUERY_TIME: Final = 0.2
"""Seconds in which a query is embedded, or not at all; it leaves a turn's search a third of its deadline."""

ROWS: Final = 500
"""Memories stored in one call, where none of them waits for its embedding."""


_SLOW, _FAST = 8, 64
"""Memories that an embedder on this machine, and another one, is given at once in the background."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Weighs the techniques of a search; the defaults are what served best on long conversations.

    ``neighbours`` are the parts of a hit's score that go to the memories one, two, … places before and after it in
    its session; ``speaker`` multiplies the score of what was said by someone the query names; ``lead`` follows the
    words of a passage that stands alone; ``rarity`` weighs words by how rare they are; ``fusion`` is the constant of
    reciprocal rank fusion (Cormack et al. 2009 take 60; a smaller one trusts the first places more), in which words
    weigh ``words`` times as much as meaning.
    """

    neighbours: tuple[float, ...] = (0.5, 0.3, 0.2, 0.1)
    speaker: float = 1.5
    lead: bool = True
    rarity: bool = True
    fusion: float = 10.0
    words: float = 1.0


STANDALONE: Final[Row] = {"neighbours": []}
STANDALONE_BY_MEANING: Final[Row] = {"neighbours": [], "words": 0.6, "speaker": 1.0, "seed_words": 0.3}
"""Options of a query for memories that stand alone, such as passages: of what is written, meaning tells more than words
do, and it is that of the title too. Walks in a graph begin at what is best with less of words, too: what leads on to an
answer often has few words of the question."""


class SqlMemory:
    """Keeps and finds memories; see :class:`~context_builder.memory.memory.MemoryStore`.

    With an ``embedder`` they are found by meaning too. It is done without while it fails. Memories are stored first
    and found by their words alone until they are embedded, which is tried whenever something is remembered, and again
    while the embedder is unavailable, for what was left before as well, a batch at a time; ``in_background``, for an
    embedder that is slow and costs nothing, all of them, and nobody waits for it. A query that is not embedded within
    ``query_time`` seconds looks for words alone.
    A warning and the ``origins`` say so.
    """

    supports_message_feed = True

    def __init__(
        self,
        database: Database,
        embedder: Embedder | None = None,
        options: SearchOptions | None = None,
        *,
        batch: int = 200,
        query_time: float = QUERY_TIME,
        in_background: bool = False,
    ) -> None:
        self._database = database
        at_once = _SLOW if in_background else _FAST
        embeddings = SqlEmbeddings(embedder, self._call, query_time=query_time, at_once=at_once) if embedder else None
        self._embeddings = embeddings
        self._options = storable(asdict(options or SearchOptions()))
        self._batch = batch
        self._in_background = in_background

    @property
    def name(self) -> str:
        return self._database.name

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        waits_for_embeddings = self._embeddings is not None and not self._in_background
        most = self._batch if waits_for_embeddings else ROWS
        for start in range(0, len(memories), most):
            rows = [as_row(memory) for memory in memories[start : start + most]]
            if self._embeddings is not None:
                rows = [row | {"embedder": self._embeddings.name} for row in rows]
            await self._call("context_memory_remember", tenant_id, memories=rows)
            if self._embeddings is None:
                continue
            if self._in_background:
                self._embeddings.fill_in_background(tenant_id)
                continue
            if await self._embeddings.fill(tenant_id, self._batch) == self._batch:
                await self._embeddings.fill(tenant_id, self._batch)
            self._embeddings.renew_in_background(tenant_id)

    async def search(self, tenant_id: str, query: MemoryQuery) -> list[SearchResult]:
        if not query.text.strip() and query.embedding is None:
            return await self._newest(tenant_id, query)
        arguments: Row = {
            "query": storable(query.text),
            "wanted": query.limit,
            "threshold": query.threshold,
            "condition": as_condition(query.filter),
            "options": self._options | (STANDALONE if query.standalone else {}),
        }
        if self._embeddings is not None:
            given = query.embedding
            embedding = given if given is not None else await self._embeddings.of_query(arguments["query"])
            if embedding is not None:
                if query.standalone:
                    arguments["options"] = self._options | STANDALONE_BY_MEANING
                    if (towards := without_common(self._embeddings.name, embedding)) is not None:
                        arguments["options"] |= {"towards": towards}
                arguments |= {"by_embedder": self._embeddings.name, "query_embedding": list(embedding)}
        told = {"texts": query.with_texts, "repeats": query.with_repeats}
        if told != {"texts": True, "repeats": False}:
            arguments["options"] = {**arguments["options"], **told}
        return found_of(await self._call("context_memory_search", tenant_id, **arguments))

    async def rate(self, tenant_id: str, ratings: Sequence[Rating]) -> None:
        if ratings:
            await self._call("context_memory_rate", tenant_id, ratings=rating_rows(ratings))

    async def forget(self, tenant_id: str, *, ids: Sequence[str] = (), filter: MemoryFilter | None = None) -> int:  # noqa: A002
        arguments: Row = {"ids": storable(ids)} if ids else {}
        if filter is not None:
            arguments["condition"] = as_condition(filter)
        return int((await self._call("context_memory_forget", tenant_id, **arguments))[0]) if arguments else 0

    async def embed_missing(self, tenant_id: str, on_embedded: OnEmbedded | None = None) -> int:
        if self._embeddings is None:
            return 0
        done, total = 0, 0
        most = _SLOW if self._in_background or on_embedded is not None else self._batch
        if on_embedded is not None:
            (total,) = await self._call("context_memory_unembedded_count", tenant_id)
            on_embedded(done, total)
        while some := await self._embeddings.fill(tenant_id, most):
            done += some
            if on_embedded is not None:
                on_embedded(done, max(done, total))
        return done + await self._embeddings.renew(tenant_id)

    async def close(self) -> None:
        if self._embeddings is not None:
            await self._embeddings.close()
        await self._database.close()

    async def _newest(self, tenant_id: str, query: MemoryQuery) -> list[SearchResult]:
        condition = as_condition(query.filter)
        return found_of(await self._call("context_memory_newest", tenant_id, count=query.limit, condition=condition))

    async def _call(self, function: str, tenant_id: str, **arguments: Any) -> list[Any]:
        if not tenant_id or storable(tenant_id) != tenant_id:
            raise DatabaseRejected("a memory belongs to a tenant, and none was named")
        return await self._database.call(function, tenant_id, arguments)


class PostgresMemory(SqlMemory):
    """Keeps memories at ``url``, apart by tenant, over at most ``connections``. See
    :class:`~context_builder.memory.memory.MemoryStore`."""

    def __init__(
        self,
        url: str,
        embedder: Embedder | None = None,
        options: SearchOptions | None = None,
        *,
        timeout: float = TIMEOUT,
        query_time: float = QUERY_TIME,
        in_background: bool = False,
        connections: int = CONNECTIONS,
    ) -> None:
        database = PostgresDatabase(url, connections=connections, timeout=timeout)
        super().__init__(database, embedder, options, query_time=query_time, in_background=in_background)
