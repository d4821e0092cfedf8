"""The embeddings of memories behind SQL functions: of queries in the time they have, of memories once stored."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Final

import structlog

from context_builder.breaker import guard_calls_to
from context_builder.errors import DatabaseError, DatabaseRejected
from context_builder.memory.embedder import Embedder, Embedding
from context_builder.memory.memory import Memory
from context_builder.memory.rows import Row, embedding_text, storable

log = structlog.get_logger(__name__)

_AT_ONCE: Final = 8
"""Memories that are embedded in the background between two calls of the database."""

AGAIN_SECONDS: Final = 30.0
"""Wait before a batch that failed is embedded again in the background, and between two words of how far that is."""

TRIES: Final = 20
"""So often a batch is tried in the background, before what is left is left to the next process."""

FIGURES: Final = 100_000
"""Figures of embeddings that are stored in one call: a large tenant's index takes a third of a second for them."""

_HARMLESS: Final = "text"
"""Probe text: an embedder that refuses this too refuses everything, not the text it was given."""


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
        self._embedder = embedder
        self._call = call
        self._query_time = query_time
        # A server may embed in a second, which is too slow for a query and not for what is remembered.
        self._queries = guard_calls_to(embedder.name, monotonic=monotonic)
        self._memories = guard_calls_to(embedder.name, monotonic=monotonic)
        self._at_once = at_once
        self._monotonic = monotonic
        self._supported: dict[int, bool] = {}
        self._unfilled: dict[str, None] = {}
        self._filling: asyncio.Task[None] | None = None
        self._renewing: dict[str, asyncio.Task[None]] = {}
        self._dimensions: int | None = None

    @property
    def name(self) -> str:
        return self._embedder.name

    async def of_query(self, text: str) -> Embedding | None:
        """Return the query's embedding; None, with a warning, when there is none in time."""
        if self._queries.refuses:
            return None
        try:
            with self._queries.guard():
                async with asyncio.timeout(self._query_time):
                    return await self._embedder.embed_query(storable(text))
        except TimeoutError:
            self._warn(f"no answer within {self._query_time * 1000:.0f} ms: searched by words alone")
        except DatabaseError as error:
            self._warn(f"{error}: searched by words alone")
        return None

    async def fill(self, tenant_id: str, most: int) -> int:
        """Embed at most ``most`` of the tenant's memories without an embedding, and return how many these were."""
        if self._memories.refuses or False in self._supported.values():
            return 0
        rows = await self._call("context_memory_unembedded", tenant_id, count=most)
        return await self._embed_rows(tenant_id, rows) if rows else 0

    async def _embed_rows(self, tenant_id: str, rows: Sequence[Row]) -> int:
        """Embed these memories, and return how many there are; 0 with a warning where that fails."""
        try:
            with self._memories.guard():
                embeddings = await self._embedded([_text(row) for row in rows])
        except DatabaseError as error:
            self._warn(f"{error}: {len(rows)} memories are found by words alone until it answers")
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
        under_way = [task for task in (self._filling, *self._renewing.values()) if task is not None]
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
        except DatabaseRejected:
            if len(texts) == 1:
                await self._embedder.embed([_HARMLESS])
                self._warn("a text was refused: it is found by words alone")
                return [[]]
        middle = len(texts) // 2
        return [*await self._embedded(texts[:middle]), *await self._embedded(texts[middle:])]

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
