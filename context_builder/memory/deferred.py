"""A memory that is opened when it is first used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from context_builder.errors import ArchiveError, EngineError, MemoryUnavailable
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery, MemoryStore, Rating, SearchResult
from context_builder.storage.deferred import Deferred


class DeferredMemory(Deferred[MemoryStore]):
    """Implements :class:`~context_builder.memory.memory.MemoryStore`."""

    def __init__(self, name: str, open_memory: Callable[[], Awaitable[MemoryStore]]) -> None:
        of_its_tables = ArchiveError  # they are made along with the archive's
        super().__init__(name, open_memory, MemoryUnavailable, fails_with=(EngineError, of_its_tables))

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        await (await self.opened()).remember(tenant_id, memories)

    async def search(self, tenant_id: str, query: MemoryQuery) -> list[SearchResult]:
        return await (await self.opened()).search(tenant_id, query)

    async def rate(self, tenant_id: str, ratings: Sequence[Rating]) -> None:
        await (await self.opened()).rate(tenant_id, ratings)

    async def forget(self, tenant_id: str, *, ids: Sequence[str] = (), filter: MemoryFilter | None = None) -> int:  # noqa: A002
        return await (await self.opened()).forget(tenant_id, ids=ids, filter=filter)
