"""A memory store as a turn's memory, and as the strategies of one prompt may use it."""

from __future__ import annotations

from hashlib import sha256
from typing import Literal

from context_builder.assembly.candidate import Candidate, ContextType, label_of
from context_builder.assembly.health import HealthState
from context_builder.assembly.retrieval.gather import Failure, failure_of
from context_builder.assembly.retrieval.source import MemoryRecord, RetrievalQuery
from context_builder.assembly.turn import DEFAULT_TENANT
from context_builder.errors import DatabaseUnavailable, NoMemoryStore
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery, MemoryStore, SearchResult
from context_builder.spoken_dates import dated
from context_builder.timestamps import day_of, moment


class StoreSource:
    """Searches a :class:`MemoryStore`: of the tenant, what belongs to the turn's user and persona or to none, so of a
    turn without a user only the latter; narrowed to its session with the scope ``session``."""

    def __init__(self, store: MemoryStore, scope: Literal["tenant", "session"] = "tenant") -> None:
        self._store = store
        self._scope = scope

    @property
    def name(self) -> str:
        return self._store.name

    async def find(self, query: RetrievalQuery) -> list[Candidate]:
        where = MemoryFilter(
            session_id=query.session_id if self._scope == "session" else None,
            user_id=query.user_id,
            persona_id=query.persona_id,
            with_unowned=True,
        )
        memory_query = MemoryQuery(query.query, query.top_k, query.threshold, where, query.embedding)
        return [
            candidate_of(found) for found in await self._store.search(query.tenant_id or DEFAULT_TENANT, memory_query)
        ]

    async def warm_up(self) -> None:
        await self._store.search(DEFAULT_TENANT, MemoryQuery("", limit=1))

    async def remember(self, record: MemoryRecord) -> None:
        """Keep the record under an id made of its session and text, so that keeping it again changes nothing."""
        named = f"{record.session_id}\n{record.kind}\n{record.text}"
        memory = Memory(
            id=f"{record.kind}-{sha256(named.encode('utf-8', 'replace')).hexdigest()[:32]}",
            text=record.text,
            kind=record.kind,
            session_id=record.session_id,
            user_id=record.user_id,
            time=moment(record.metadata.get("timestamp")),
            tags=record.tags,
            metadata={"persona_id": record.persona_id, **record.metadata},
        )
        await self._store.remember(record.tenant_id or DEFAULT_TENANT, [memory])


def candidate_of(found: SearchResult, kind: ContextType = ContextType.SEMANTIC) -> Candidate:
    """Return a search result as a candidate."""
    memory = found.memory
    metadata = {"type": memory.kind, **memory.metadata}
    if (time := moment(memory.time)) is not None:
        metadata["timestamp"] = time.isoformat()
    if (feedback := found.feedback) is not None:
        metadata["feedback"] = {
            "score": feedback.score,
            "timestamp": feedback.time.isoformat() if feedback.time else None,
        }
    return Candidate(
        id=memory.id,
        text=memory.text if memory.session_id is None else dated(memory.text, day_of(memory.time)),
        type=kind,
        base_score=found.score,
        score=found.score,
        label=label_of(metadata, memory.speaker, memory.time),
        speaker=memory.speaker,
        time=moment(metadata.get("timestamp")),
        origins=found.origins or ("store",),
        metadata=metadata,
        memory=memory,
    )


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
        and :class:`~context_builder.errors.DatabaseUnavailable` while it is down.
        """
        if self._store is None:
            raise NoMemoryStore("the builder was given no memory store")
        if self._state is HealthState.DOWN:
            raise DatabaseUnavailable(f"{self._store.name} is not asked: it failed too often")
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
