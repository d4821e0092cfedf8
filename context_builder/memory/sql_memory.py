"""Memories behind the SQL functions of ``context_builder/database/sql``, whichever way these are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from context_builder.database.database import Database
from context_builder.errors import DatabaseRejected
from context_builder.memory.common_query import without_common
from context_builder.memory.embedder import Embedder
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery, OnEmbedded, Rating, SearchResult
from context_builder.memory.rows import Row, as_condition, as_row, found_of, rating_rows, storable
from context_builder.memory.sql_embeddings import SqlEmbeddings

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
STANDALONE_BY_MEANING: Final[Row] = {"neighbours": [], "words": 0.6, "speaker": 1.0}
"""Options of a query for memories that stand alone, such as passages: of what is written, meaning tells more than words
do, and it is that of the title too."""


class SqlMemory:
    """Keeps and finds memories; see :class:`~context_builder.memory.memory.MemoryStore`.

    With an ``embedder`` they are found by meaning too. It is done without while it fails. Memories are stored first
    and found by their words alone until they are embedded, which is tried whenever something is remembered, for what
    was left before as well, a batch at a time; ``in_background``, for an embedder that is slow and costs nothing, all
    of them, and nobody waits for it. A query that is not embedded within ``query_time`` seconds looks for words alone.
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
            embedding = query.embedding if query.embedding is not None else await self._embeddings.of_query(query.text)
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
