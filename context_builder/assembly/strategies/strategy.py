"""A strategy offers candidates for a context."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.retrieval.preference_history import FindPreferences, by_patterns
from context_builder.assembly.session_state import State
from context_builder.assembly.turn import DEFAULT_TENANT
from context_builder.errors import NoMemoryStore
from context_builder.memory.memory import MemoryFilter, MemoryQuery, SearchResult


class Searchable(Protocol):
    """Defines what can be searched like a :class:`MemoryStore`."""

    async def search(self, tenant_id: str, query: MemoryQuery) -> list[SearchResult]: ...


ReadSession = Callable[[str, str], Awaitable[State | None]]
"""The state that a tenant's session publishes, by tenant and session id; None where there is none to be had."""


async def no_session(tenant_id: str, session_id: str) -> None:
    """Return no state, for builders that know no session."""


@dataclass(frozen=True, slots=True)
class StrategyRequest:
    """Holds whom and what a context is built for."""

    query: str
    now: datetime
    tenant_id: str = DEFAULT_TENANT
    user_id: str | None = None
    conversation_id: str | None = None
    store: Searchable | None = None
    find_preferences: FindPreferences = by_patterns
    """Finds the preferences that messages state of their speakers."""
    read_session: ReadSession = no_session
    """Reads the state that a running session publishes."""

    async def search(self, query: MemoryQuery) -> list[SearchResult]:
        """Search the memory store; raises :class:`~context_builder.errors.NoMemoryStore` when there is none."""
        if self.store is None:
            raise NoMemoryStore("the builder was given no memory store")
        return await self.store.search(self.tenant_id, query)

    def where(self, *, kinds: tuple[str, ...] = ()) -> MemoryFilter:
        """Return a filter for the request's conversation, memories of its user or of nobody, and these kinds."""
        return MemoryFilter(session_id=self.conversation_id, user_id=self.user_id, kinds=kinds, with_unowned=True)


class ContextStrategy(Protocol):
    """Finds candidates of one type.

    Messages (``ContextType.RECENT``) come newest first, memories (``ContextType.SEMANTIC``) in any order, because the
    signals rank them, everything else best first; text of type ``ContextType.SYSTEM`` becomes part of the system
    message, which is always there. What it raises becomes a :class:`~context_builder.errors.StrategyError`, unless it
    was added as optional.
    """

    async def candidates(self, request: StrategyRequest) -> Sequence[Candidate]: ...
