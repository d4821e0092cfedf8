"""A memory store as one tenant sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from context_builder.memory.memory import Found, Memory, MemoryFilter, MemoryQuery, MemoryStore


@dataclass(frozen=True, slots=True)
class TenantMemory:
    """Everything is done on behalf of ``tenant_id``."""

    store: MemoryStore
    tenant_id: str

    @property
    def name(self) -> str:
        return self.store.name

    async def remember(self, memories: Sequence[Memory]) -> None:
        await self.store.remember(self.tenant_id, memories)

    async def search(self, query: MemoryQuery) -> list[Found]:
        return await self.store.search(self.tenant_id, query)

    async def forget(self, ids: Sequence[str]) -> int:
        return await self.store.forget(self.tenant_id, ids=ids)

    async def forget_session(self, session_id: str) -> int:
        """Delete every memory of the session; how many there were."""
        return await self.store.forget(self.tenant_id, filter=MemoryFilter(session_id=session_id))
