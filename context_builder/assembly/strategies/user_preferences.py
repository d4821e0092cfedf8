"""What the user likes."""

from __future__ import annotations

from collections.abc import Sequence

from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.stored import candidate_of
from context_builder.assembly.strategies.strategy import Request
from context_builder.memory.memory import MemoryFilter, MemoryQuery
from context_builder.memory.preferences import KIND, WITHDRAWN


class UserPreferencesStrategy:
    """The newest ``count`` preferences that the request's user has stated."""

    def __init__(self, count: int = 20) -> None:
        self._count = count

    async def candidates(self, request: Request) -> Sequence[Candidate]:
        if request.user_id is None:
            return []
        where = MemoryFilter(user_id=request.user_id, kinds=(KIND,))
        found = await request.search(MemoryQuery("", limit=self._count, filter=where))
        held = (one for one in found if WITHDRAWN not in one.memory.metadata)
        return [candidate_of(one, ContextType.USER_PREFERENCES) for one in held]
