"""The memory store as the strategies of one prompt may use it."""

from __future__ import annotations

from context_builder.assembly.health import HealthState
from context_builder.assembly.retrieval.gather import Failure, failure_of
from context_builder.errors import MemoryUnavailable, NoMemoryStore
from context_builder.memory.memory import MemoryQuery, MemoryStore, SearchResult


class StoreAccess:
    """Searches a store unless it is down, and tells afterwards how it answered."""

    def __init__(self, store: MemoryStore | None, state: HealthState) -> None:
        self._store = store
        self._state = state
        self._under_way = 0
        self._answered = False
        self._error: Exception | None = None

    async def search(self, tenant_id: str, query: MemoryQuery) -> list[SearchResult]:
        """Search like :meth:`MemoryStore.search`; raises :class:`~context_builder.errors.NoMemoryStore` without a store
        and :class:`~context_builder.errors.MemoryUnavailable` while it is down.
        """
        if self._store is None:
            raise NoMemoryStore("the builder was given no memory store")
        if self._state is HealthState.DOWN:
            raise MemoryUnavailable(f"{self._store.name} is not asked: it failed too often")
        self._under_way += 1
        try:
            found = await self._store.search(tenant_id, query)
        except Exception as error:
            self._error = error
            raise
        finally:
            self._under_way -= 1
        self._answered = True
        return found

    def failure(self, deadline: float) -> Failure | None:
        """Return why the store gave nothing, at the end of ``deadline`` seconds; None where nothing failed."""
        if self._store is None or not (self._under_way or self._error):
            return None
        return failure_of(self._store.name, self._error, deadline)

    @property
    def answered(self) -> bool:
        """Return whether a search succeeded."""
        return self._answered
