"""The protocol of a memory store, and its values and filters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

from context_builder.clock import in_utc
from context_builder.values import value


def point_id(session_id: str, number: int, time: float) -> str:
    """Return the id of a summary point's memory, made of its number and its time in epoch seconds.

    The time tells it from a point of the same number in another run of the session, after the first was swept.
    """
    return f"{session_id}:point:{number}:{time:.0f}"


def point_number(session_id: str, memory_id: str) -> int | None:
    """Return the number of the point whose memory has this id; None for the id of anything else."""
    number = re.match(re.escape(session_id) + r":point:([0-9]{1,18}):", memory_id)
    return None if number is None else int(number[1])


@value
class Memory:
    """One thing worth remembering.

    ``id`` is the caller's, unique within the tenant: remembering it again replaces it. ``kind`` says what it
    is, such as ``message``, ``point``, ``session_summary`` or ``preference``. ``position`` orders the memories of
    a session (a message's place in its conversation), so that neighbours can be found.
    """

    id: str
    text: str
    kind: str = "message"
    session_id: str | None = None
    user_id: str | None = None
    speaker: str | None = None
    time: datetime | None = None
    position: int | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """Restricts which memories count; what is empty does not restrict. ``tags`` must all be there. ``ids`` are those of
    memories, of which each may be one; ``speaker`` is a whole name; what is of ``without_sessions`` or
    ``without_kinds`` is left out. ``sensitivities`` are those stated of sessions and documents, ``internal`` of the
    others; a store that knows none of them lets all through.

    ``with_unowned`` lets through what belongs to the user and the persona named here or to none, as what was said in a
    session does; where none is named, only the latter. Without it, a filter that names nobody lets through everybody's.
    """

    session_id: str | None = None
    user_id: str | None = None
    persona_id: str | None = None
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    with_unowned: bool = False
    speaker: str | None = None
    ids: tuple[str, ...] = ()
    without_sessions: tuple[str, ...] = ()
    without_kinds: tuple[str, ...] = ()
    sensitivities: tuple[str, ...] = ()

    def passes(self, memory: Memory) -> bool:
        """Return whether the memory meets the filter."""
        time = memory.time and in_utc(memory.time)
        return (
            self.session_id in (None, memory.session_id)
            and memory.session_id not in self.without_sessions
            and self.speaker in (None, memory.speaker)
            and (not self.ids or memory.id in self.ids)
            and self._passes_owners(memory)
            and (not self.kinds or memory.kind in self.kinds)
            and memory.kind not in self.without_kinds
            and set(self.tags) <= set(memory.tags)
            and (self.since is None or (time is not None and time >= in_utc(self.since)))
            and (self.until is None or (time is not None and time < in_utc(self.until)))
        )

    def _passes_owners(self, memory: Memory) -> bool:
        persona_id = memory.metadata.get("persona_id")
        owned = ((self.user_id, memory.user_id), (self.persona_id, None if persona_id is None else str(persona_id)))
        if self.with_unowned:
            return all(owner in (None, named) for named, owner in owned)
        return all(named in (None, owner) for named, owner in owned)


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """What is looked for, at most ``limit`` memories of similarity at least ``threshold`` (0..1).

    An empty ``text`` looks for the newest. With ``standalone``, memories are found for what they say themselves, as
    passages of a document are; without, also for what was said before and after them. A store may leave empty the texts
    of what it finds ``with_texts`` false, for a caller who only wants to know which memories these are. Of memories
    with the same text the best is found, or ``with_repeats`` each.
    """

    text: str
    limit: int = 8
    threshold: float = 0.0
    filter: MemoryFilter = field(default_factory=MemoryFilter)
    embedding: Sequence[float] | None = None
    """The query's embedding, when the caller has it already."""
    standalone: bool = False
    with_texts: bool = True
    with_repeats: bool = False


@dataclass(frozen=True, slots=True)
class Rating:
    """Whether a memory helped where it was used: ``score`` from 0, not at all, to 1. Of a user, or of nobody in
    particular, the latest rating of a memory counts."""

    id: str
    score: float
    time: datetime
    user_id: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.score <= 1:
            raise ValueError(f"the rating of {self.id} must be from 0 to 1, and is {self.score}")


@dataclass(frozen=True, slots=True)
class MemoryFeedback:
    """The ratings of ``count`` users: their mean, 0..1, and when the latest was given."""

    score: float
    count: int
    time: datetime | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A memory that was found. ``score`` in 0..1 is its similarity to the query, not its share of the best one's,
    so that a threshold means the same in every search; ``origins`` says what found it. ``seed`` in 0..1 is how much a
    walk in a graph should begin there at least.
    """

    memory: Memory
    score: float
    origins: tuple[str, ...] = ()
    feedback: MemoryFeedback | None = None
    seed: float = 0.0


_BY_MEANING: Final = frozenset({"vector", "neighbour"})
"""Origins of what none of the words that were looked for is known to be in."""


def is_by_meaning_alone(origins: Iterable[Sequence[str]]) -> bool:
    """Return whether there are results, of these origins, and none was found by its words."""
    each = [*map(set, origins)]
    return bool(each) and all(one and one <= _BY_MEANING for one in each)


OnEmbedded = Callable[[int, int], None]
"""Told how many memories are embedded, and of how many."""


class MemoryStore(Protocol):
    """Keeps memories apart by tenant.

    Every method raises :class:`~context_builder.errors.DatabaseUnavailable` when the store cannot be reached in
    time and :class:`~context_builder.errors.DatabaseRejected` when it refuses.
    """

    @property
    def name(self) -> str:
        """Return the store's name for people; free of secrets."""
        ...

    @property
    def supports_message_feed(self) -> bool:
        """Return whether messages may be remembered as they are said, several times a second, and again with more about
        them once they are summarized; it takes that :meth:`remember` replaces, and :meth:`forget` deletes.
        """
        ...

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        """Keep the memories, each replacing the one of the same id; a preference replaces none stated later."""
        ...

    async def search(self, tenant_id: str, query: MemoryQuery) -> list[SearchResult]:
        """Return the memories that fit the query best, best first. An empty query text means the newest first, of those
        that pass the filter; strategies rely on it.
        """
        ...

    async def rate(self, tenant_id: str, ratings: Sequence[Rating]) -> None:
        """Keep with the memories whether they helped; deleted ones are ignored."""
        ...

    async def forget(self, tenant_id: str, *, ids: Sequence[str] = (), filter: MemoryFilter | None = None) -> int:  # noqa: A002
        """Delete memories by id or by filter, and return how many there were. Without either, delete nothing.

        Raises :class:`~context_builder.errors.CannotForget` when the store has no way to delete.
        """
        ...

    async def embed_missing(self, tenant_id: str, on_embedded: OnEmbedded | None = None) -> int:
        """Embed what is stored without an embedding yet, and return how many memories these were."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class ForwardingMemory:
    """Passes every call on to ``memory``; a subclass overrides what it does otherwise.

    Implements :class:`MemoryStore`.
    """

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory

    @property
    def name(self) -> str:
        return self._memory.name

    @property
    def supports_message_feed(self) -> bool:
        return self._memory.supports_message_feed

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        await self._memory.remember(tenant_id, memories)

    async def search(self, tenant_id: str, query: MemoryQuery) -> list[SearchResult]:
        return await self._memory.search(tenant_id, query)

    async def rate(self, tenant_id: str, ratings: Sequence[Rating]) -> None:
        await self._memory.rate(tenant_id, ratings)

    async def forget(self, tenant_id: str, *, ids: Sequence[str] = (), filter: MemoryFilter | None = None) -> int:  # noqa: A002
        return await self._memory.forget(tenant_id, ids=ids, filter=filter)

    async def embed_missing(self, tenant_id: str, on_embedded: OnEmbedded | None = None) -> int:
        return await self._memory.embed_missing(tenant_id, on_embedded)

    async def close(self) -> None:
        await self._memory.close()


@dataclass(frozen=True, slots=True)
class TenantMemory:
    """Calls a memory store on behalf of ``tenant_id``."""

    store: MemoryStore
    tenant_id: str

    @property
    def name(self) -> str:
        return self.store.name

    @property
    def supports_message_feed(self) -> bool:
        return self.store.supports_message_feed

    async def remember(self, memories: Sequence[Memory]) -> None:
        await self.store.remember(self.tenant_id, memories)

    async def search(self, query: MemoryQuery) -> list[SearchResult]:
        return await self.store.search(self.tenant_id, query)

    async def forget(self, ids: Sequence[str]) -> int:
        return await self.store.forget(self.tenant_id, ids=ids)

    async def forget_session(self, session_id: str) -> int:
        """Delete every memory of the session, and return how many there were."""
        return await self.store.forget(self.tenant_id, filter=MemoryFilter(session_id=session_id))
