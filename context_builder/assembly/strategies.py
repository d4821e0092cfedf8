"""Strategies offer candidates for a context: preferences, memories, summaries, recent messages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Protocol

from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.preference_history import FindPreferences, by_patterns, held
from context_builder.assembly.query_kind import QueryKind, kind_of
from context_builder.assembly.session_state import (
    ASSISTANT,
    LONG_AGO,
    State,
    from_first_question,
    message_name,
    published_messages,
    summarized,
    with_dates,
)
from context_builder.assembly.sources import candidates_of
from context_builder.assembly.turn import DEFAULT_TENANT
from context_builder.clock import moment
from context_builder.errors import NoMemoryStore
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery, SearchResult
from context_builder.memory.preferences import KIND


class Searchable(Protocol):
    """Defines what can be searched like a :class:`MemoryStore`."""

    async def search(self, tenant_id: str, query: MemoryQuery) -> list[SearchResult]: ...


ReadSession = Callable[[str, str], Awaitable[State | None]]
"""The state that a tenant's session publishes, by tenant and session id; None where there is none to be had."""


async def no_session(tenant_id: str, session_id: str) -> None:
    """Return no state, for builders that know no session."""


@dataclass(frozen=True, slots=True)
class StrategyRequest:
    """For whom, and for what query, a context is built."""

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


MOST: Final = 200
"""Newest preferences and messages of the user, and messages of the conversation, that are looked through."""


class UserPreferencesStrategy:
    """Finds the user's newest ``count`` current preferences: those that are stored, and those that messages state, in
    any conversation where these are stored as the user's, else in the request's.
    """

    def __init__(self, count: int = 20) -> None:
        self._count = count

    async def candidates(self, request: StrategyRequest) -> Sequence[Candidate]:
        if (user_id := request.user_id) is None:
            return []
        wheres = [MemoryFilter(user_id=user_id, kinds=(KIND,)), MemoryFilter(user_id=user_id, kinds=("message",))]
        if request.conversation_id is not None:
            wheres.append(request.where(kinds=("message",)))
        stored, *stated = await asyncio.gather(*(request.search(MemoryQuery("", MOST, filter=one)) for one in wheres))
        messages = _in_order(one for found in stated for one in found if _is_said_by(user_id, one.memory))
        found = await request.find_preferences(request.tenant_id, messages)
        holding = held((one.memory for one in reversed(stored)), zip(messages, found, strict=True), user_id)
        return candidates_of([SearchResult(one, 1.0) for one in holding[: self._count]], ContextType.USER_PREFERENCES)


def _in_order(found: Iterable[SearchResult]) -> list[Memory]:
    unique = {one.memory.id: one.memory for one in found}.values()
    return sorted(unique, key=lambda one: (moment(one.time) or LONG_AGO, -1 if one.position is None else one.position))


def _is_said_by(user_id: str, message: Memory) -> bool:
    """Return whether the message is the user's: stored as theirs, naming them, or by a speaker of that name."""
    own = message.metadata.get("role") == "assistant" or message.metadata.get("consilience")
    if own or message.speaker == ASSISTANT:
        return False
    return (message.user_id or message.metadata.get("user_id") or message.speaker) == user_id


class SemanticSearchStrategy:
    """Finds the ``top_k`` memories of the request's user most similar to the query.

    Of all conversations, unless ``within_conversation``. Without a query there is nothing to look for.
    """

    def __init__(self, top_k: int = 5, *, threshold: float = 0.0, within_conversation: bool = False) -> None:
        self._top_k = top_k
        self._threshold = threshold
        self._within_conversation = within_conversation

    async def candidates(self, request: StrategyRequest) -> Sequence[Candidate]:
        if not request.query.strip():
            return []
        where = request.where()
        if not self._within_conversation:
            where = replace(where, session_id=None)
        found = await request.search(MemoryQuery(request.query, self._top_k, self._threshold, where))
        return sorted(candidates_of(found), key=lambda candidate: -candidate.base_score)


class RollingSummaryStrategy:
    """Finds the points of a session's published state, newest first; its whole summary where it has no points."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def candidates(self, request: StrategyRequest) -> Sequence[Candidate]:
        return summarized(self._state)


class RecentMessagesStrategy:
    """Finds the newest ``count`` messages of the request's conversation that are its user's or nobody's: those that a
    running session publishes, which the memory store may not have yet, and before them the store's.
    """

    def __init__(self, count: int = 10) -> None:
        self._count = count

    async def candidates(self, request: StrategyRequest) -> Sequence[Candidate]:
        if request.conversation_id is None:
            return []
        state = await request.read_session(request.tenant_id, request.conversation_id)
        published = [with_dates(one) for one in published_messages(state)[: self._count]] if state is not None else []
        if len(published) == self._count or (published and request.store is None):
            return from_first_question(published)
        wanted = MemoryQuery("", limit=self._count, filter=request.where(kinds=("message",)))
        known = {candidate.id for candidate in published}
        stored = [one for one in await request.search(wanted) if message_name(one.memory.position) not in known]
        older = (_message(one) for one in sorted(stored, key=_place, reverse=True))
        return from_first_question([*published, *older][: self._count])


class SessionMessagesStrategy:
    """Finds the newest ``count`` messages of a session's published state, the assistant's own among them."""

    def __init__(self, state: State, count: int = 50) -> None:
        self._state = state
        self._count = count

    async def candidates(self, request: StrategyRequest) -> Sequence[Candidate]:
        return from_first_question([with_dates(one) for one in published_messages(self._state)[: self._count]])


def _message(found: SearchResult) -> Candidate:
    (candidate,) = candidates_of([found], ContextType.RECENT)
    own = candidate.metadata.get("role") == "assistant" or candidate.speaker == ASSISTANT
    role = "assistant" if own else "user"  # no memory speaks as the system
    return replace(candidate, role=role, speaker=None if role == "assistant" else candidate.speaker)


def _place(found: SearchResult) -> tuple[datetime, int]:
    memory = found.memory
    return moment(memory.time) or LONG_AGO, -1 if memory.position is None else memory.position


class QueryStrategy:
    """Asks those strategies that serve the request's query; with a session's published ``state``, that one's too."""

    def __init__(self, state: State | None = None) -> None:
        self._state = state

    async def candidates(self, request: StrategyRequest) -> Sequence[Candidate]:
        asked = (one.candidates(request) for one in self.chosen(request.query))
        return [candidate for found in await asyncio.gather(*asked) for candidate in found]

    def chosen(self, query: str) -> Sequence[ContextStrategy]:
        """Return the strategies for a query."""
        match kind_of(query):
            case QueryKind.SUMMARY:
                return [*self._summary(), self._messages(10), SemanticSearchStrategy(3)]
            case QueryKind.PREFERENCE:
                return [UserPreferencesStrategy(), SemanticSearchStrategy(5), self._messages(5)]
            case QueryKind.RECENT:
                return [self._messages(30), *self._summary()]
            case _:
                return [SemanticSearchStrategy(10), self._messages(5), *self._summary()]

    def _messages(self, count: int) -> ContextStrategy:
        if self._state is None:
            return RecentMessagesStrategy(count)
        return SessionMessagesStrategy(self._state, count)

    def _summary(self) -> Sequence[ContextStrategy]:
        return [] if self._state is None else [RollingSummaryStrategy(self._state)]
