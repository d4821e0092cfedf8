"""Searches the vectors without a deadline, at the start and while they are left alone for being too slow."""

from __future__ import annotations

import asyncio
import math
from typing import Final

from context_builder.assembly.background import Background
from context_builder.assembly.retrieval.retriever import SourceHealth
from context_builder.clock import Clock
from context_builder.errors import ContextBuilderError
from context_builder.knowledge.request import ContextBuildRequest, SemanticRetrieval
from context_builder.knowledge.services import VectorMemory
from context_builder.knowledge.sources import SEMANTIC

PATIENCE: Final = 10.0
"""Seconds that a search may take which no package waits for."""


class VectorRecovery:
    """Lets the vectors be asked again once a search takes less than ``deadline`` seconds.

    A database that has just started reads from disk what the next search finds in memory, so that the first searches
    miss every deadline.
    """

    def __init__(
        self, vectors: VectorMemory, health: SourceHealth, background: Background, clock: Clock, deadline: float
    ) -> None:
        self._vectors = vectors
        self._health = health
        self._background = background
        self._clock = clock
        self._deadline = deadline
        self._is_running = False

    async def search(self, tenant_id: str, request: ContextBuildRequest) -> float:
        """Search as the request asks, and return the seconds that took; ``inf`` if it failed."""
        asked = request.retrieval.semantic or SemanticRetrieval()
        began = self._clock.now().monotonic
        try:
            async with asyncio.timeout(PATIENCE):
                await self._vectors.search(tenant_id, request.intent, asked, request.scope, 0)
        except (ContextBuilderError, TimeoutError):
            return math.inf
        return self._clock.now().monotonic - began

    def begin(self, tenant_id: str, request: ContextBuildRequest) -> None:
        """Begin a search in the background, unless one is under way."""
        if not self._is_running:
            self._is_running = self._background.start("search again", self._recover(tenant_id, request))

    async def _recover(self, tenant_id: str, request: ContextBuildRequest) -> None:
        try:
            if await self.search(tenant_id, request) < self._deadline:
                self._health.recovered(SEMANTIC)
        finally:
            self._is_running = False
