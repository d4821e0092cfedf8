"""A memory that is opened when it is first used."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from context_builder.errors import ArchiveError, EngineError, MemoryUnavailable
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery, MemoryStore, Rating, SearchResult


class DeferredMemory:
    """Opens the real memory on first use, off the start-up path; a failed opening is tried again next time.

    See :class:`~context_builder.memory.memory.MemoryStore`.
    """

    def __init__(self, name: str, open_memory: Callable[[], Awaitable[MemoryStore]]) -> None:
        self.name = name
        self._open_memory = open_memory
        self._opening = asyncio.Lock()
        self._memory: MemoryStore | None = None

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        await (await self._opened()).remember(tenant_id, memories)

    async def search(self, tenant_id: str, query: MemoryQuery) -> list[SearchResult]:
        return await (await self._opened()).search(tenant_id, query)

    async def rate(self, tenant_id: str, ratings: Sequence[Rating]) -> None:
        await (await self._opened()).rate(tenant_id, ratings)

    async def forget(self, tenant_id: str, *, ids: Sequence[str] = (), filter: MemoryFilter | None = None) -> int:  # noqa: A002
        return await (await self._opened()).forget(tenant_id, ids=ids, filter=filter)

    async def close(self) -> None:
        if self._memory is not None:
            await self._memory.close()

    async def _opened(self) -> MemoryStore:
        async with self._opening:
            if self._memory is None:
                try:
                    self._memory = await self._open_memory()
                except (EngineError, ArchiveError) as error:  # its tables are made along with the archive's
                    raise MemoryUnavailable(str(error)) from None
            return self._memory
