"""Memories behind the SQL functions of ``context_builder/sql``, whichever way these are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import structlog

from context_builder.errors import MemoryRejected, MemoryStoreError
from context_builder.memory.embedder import Embedder, Embedding
from context_builder.memory.memory import Found, Memory, MemoryFilter, MemoryQuery, Rating
from context_builder.memory.rows import Row, as_condition, as_row, embedding_text, found_of, rating_rows, storable

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How much each technique counts; the defaults are what served best on long conversations.

    ``neighbours`` are the parts of a hit's score that go to the memories one, two, … places before and after it in
    its session; ``speaker`` multiplies the score of what was said by someone the query names; ``lead`` follows the
    words of a passage that stands alone; ``rarity`` weighs words by how rare they are; ``fusion`` is the constant of
    reciprocal rank fusion (Cormack et al. 2009 take 60; a smaller one trusts the first places more).
    """

    neighbours: tuple[float, ...] = (0.5, 0.3, 0.2, 0.1)
    speaker: float = 1.5
    lead: bool = True
    rarity: bool = True
    fusion: float = 10.0


class SqlFunctions(Protocol):
    """A way to call the SQL functions. Raises :class:`~context_builder.errors.MemoryStoreError`."""

    @property
    def name(self) -> str: ...

    async def call(self, function: str, tenant_id: str, arguments: Mapping[str, Any]) -> list[Any]:
        """The rows that the function returns, as JSON values; one for a function that returns a value."""
        ...

    async def close(self) -> None: ...


class SqlMemory:
    """Keeps and finds memories; see :class:`~context_builder.memory.memory.MemoryStore`.

    With an ``embedder`` they are found by meaning too. One that fails is done without: what is remembered meanwhile is
    found by its words alone until it is remembered again, what is looked for likewise; a warning and the
    ``origins`` say so.
    """

    def __init__(
        self,
        functions: SqlFunctions,
        embedder: Embedder | None = None,
        options: SearchOptions | None = None,
        *,
        batch: int = 200,
    ) -> None:
        self._functions = functions
        self._embedder = embedder
        self._options = storable(asdict(options or SearchOptions()))
        self._batch = batch
        self._prepared: dict[int, bool] = {}

    @property
    def name(self) -> str:
        return self._functions.name

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        for start in range(0, len(memories), self._batch):
            batch = {memory.id: memory for memory in memories[start : start + self._batch]}
            rows = [as_row(memory) for memory in batch.values()]
            if self._embedder is not None:
                await self._embed(
                    self._embedder, tenant_id, rows, [embedding_text(memory) for memory in batch.values()]
                )
            await self._call("context_memory_remember", tenant_id, memories=rows)

    async def search(self, tenant_id: str, query: MemoryQuery) -> list[Found]:
        if not query.text.strip() and query.embedding is None:
            return await self._newest(tenant_id, query)
        arguments: Row = {
            "query": storable(query.text),
            "wanted": query.limit,
            "threshold": query.threshold,
            "condition": as_condition(query.filter),
            "options": self._options,
        }
        embedding = await self._query_embedding(query)
        if embedding is not None and self._embedder is not None:
            arguments |= {"by_embedder": self._embedder.name, "query_embedding": embedding}
        return found_of(await self._call("context_memory_search", tenant_id, **arguments))

    async def rate(self, tenant_id: str, ratings: Sequence[Rating]) -> None:
        if ratings:
            await self._call("context_memory_rate", tenant_id, ratings=rating_rows(ratings))

    async def forget(self, tenant_id: str, *, ids: Sequence[str] = (), filter: MemoryFilter | None = None) -> int:  # noqa: A002
        arguments: Row = {"ids": storable(ids)} if ids else {}
        if filter is not None:
            arguments["condition"] = as_condition(filter)
        return int((await self._call("context_memory_forget", tenant_id, **arguments))[0]) if arguments else 0

    async def close(self) -> None:
        await self._functions.close()
        if self._embedder is not None:
            await self._embedder.close()

    async def _newest(self, tenant_id: str, query: MemoryQuery) -> list[Found]:
        condition = as_condition(query.filter)
        return found_of(await self._call("context_memory_newest", tenant_id, wanted=query.limit, condition=condition))

    async def _embed(self, embedder: Embedder, tenant_id: str, rows: list[Row], texts: list[str]) -> None:
        """Add embeddings to the rows that need one."""
        asked = {
            "by_embedder": embedder.name,
            "ids": [row["id"] for row in rows],
            "digests": [row["digest"] for row in rows],
        }
        known = set(await self._call("context_memory_embedded", tenant_id, **asked))
        missing = [(row, text) for row, text in zip(rows, texts, strict=True) if row["id"] not in known]
        try:
            embeddings = await embedder.embed([text for _, text in missing]) if missing else []
        except MemoryStoreError as error:
            log.warning("memory.embedding_failed", embedder=embedder.name, reason=str(error), memories=len(missing))
            return
        if embeddings and await self._is_prepared(tenant_id, len(embeddings[0])):
            for (row, _), embedding in zip(missing, embeddings, strict=True):
                row |= {"embedder": embedder.name, "embedding": embedding}

    async def _query_embedding(self, query: MemoryQuery) -> Embedding | None:
        if query.embedding is not None or self._embedder is None:
            return list(query.embedding) if query.embedding is not None else None
        try:
            return await self._embedder.embed_query(storable(query.text))
        except MemoryStoreError as error:
            log.warning("memory.embedding_failed", embedder=self._embedder.name, reason=str(error), memories=0)
            return None

    async def _is_prepared(self, tenant_id: str, dimensions: int) -> bool:
        """Whether the database can search embeddings of so many dimensions; if not, that is said once."""
        if dimensions not in self._prepared:
            prepared = bool((await self._call("context_memory_prepare", tenant_id, dimensions=dimensions))[0])
            self._prepared[dimensions] = prepared
            if not prepared:
                log.warning("memory.embeddings_unsupported", memory=self.name, dimensions=dimensions)
        return self._prepared[dimensions]

    async def _call(self, function: str, tenant_id: str, **arguments: Any) -> list[Any]:
        if not tenant_id or "\x00" in tenant_id:
            raise MemoryRejected("a memory belongs to a tenant, and none was named")
        return await self._functions.call(function, tenant_id, arguments)
