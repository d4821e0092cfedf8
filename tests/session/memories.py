"""Memories that take their time, or have a price."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from context_builder.costs import Usage, charge
from context_builder.memory.memory import Memory
from context_builder.testing import InMemoryStore


class PricedMemory(InMemoryStore):
    """Embeds what it remembers, at a price, however often it is told."""

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        charge("embeddings", Usage(model="e5", prompt_tokens=7, calls=1, dollars=0.25))
        await super().remember(tenant_id, memories)


class SlowMemory(InMemoryStore):
    """Takes in nothing until it may, and what was sent cannot be called back."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.may = asyncio.Event(), asyncio.Event()

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        self.asked.set()
        await asyncio.shield(self._remember_later(tenant_id, memories))

    async def _remember_later(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        await self.may.wait()
        await super().remember(tenant_id, memories)
