"""Memory sources answer a turn's query, and keep records for later turns: a memory store, SomaBrain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal, Protocol, runtime_checkable

from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.turn import DEFAULT_TENANT
from context_builder.clock import day_of, moment
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery, MemoryStore, SearchResult
from context_builder.memory.somabrain import SomaBrainEntry, UnknownCall, read_entries
from context_builder.quoting import label_of
from context_builder.spoken_dates import dated


@dataclass(frozen=True, slots=True)
class RetrievalQuery:
    """Asks for at most ``top_k`` memories that fit ``query`` with a similarity of at least ``threshold`` (0..1), among
    those that ``where`` lets through."""

    query: str
    top_k: int
    threshold: float
    tenant_id: str | None = None
    session_id: str | None = None
    persona_id: str | None = None
    user_id: str | None = None
    embedding: Sequence[float] | None = None
    where: MemoryFilter = field(default_factory=MemoryFilter)

    @property
    def is_blank(self) -> bool:
        """Return whether there is nothing to look for."""
        return not self.query.strip()


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A redacted text to keep, such as the summary of messages trimmed from a prompt."""

    text: str
    kind: str
    tags: tuple[str, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tenant_id: str | None = None
    session_id: str | None = None
    persona_id: str | None = None
    user_id: str | None = None


class MemorySource(Protocol):
    """Finds memories for turns; any exception is a failure of the memory."""

    @property
    def name(self) -> str:
        """Return what tells it from the builder's other memories, in their health and in ``debug``."""
        ...

    async def find(self, query: RetrievalQuery) -> Sequence[Candidate]:
        """Return what fits, in any order, each with its similarity as ``base_score``; the pipeline takes the best."""
        ...

    async def warm_up(self) -> None:
        """Do what the first call would have to do first, such as connecting."""
        ...


@runtime_checkable
class RecordStore(Protocol):
    """Keeps the summaries of what leaves histories; a source that is one too finds them again."""

    @property
    def name(self) -> str: ...

    async def remember(self, record: MemoryRecord) -> None:
        """Keep the record."""
        ...


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
        where = replace(
            query.where,
            session_id=query.session_id if self._scope == "session" else query.where.session_id,
            user_id=query.user_id,
            persona_id=query.persona_id,
            with_unowned=True,
        )
        memory_query = MemoryQuery(query.query, query.top_k, query.threshold, where, query.embedding)
        return candidates_of(await self._store.search(query.tenant_id or DEFAULT_TENANT, memory_query))

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


def _passes(candidate: Candidate, where: MemoryFilter) -> bool:
    """Return whether a filter lets through what SomaBrain found, which it cannot be asked for."""
    said = candidate.metadata
    kind, session = str(said.get("type", "")), said.get("session_id")
    memory = Memory(candidate.id, candidate.text, kind, session, speaker=candidate.speaker, time=candidate.time)
    return where.passes(memory)


def candidates_of(found: Sequence[SearchResult], kind: ContextType = ContextType.SEMANTIC) -> list[Candidate]:
    """Return search results as candidates."""
    memories = [one.memory for one in found]
    times = [*map(moment, [one.time for one in memories])]
    metadata = [*map(_metadata, found, times)]
    labels = [*map(label_of, metadata, [one.speaker for one in memories], [one.time for one in memories])]
    return [
        Candidate(
            id=one.memory.id,
            text=_text(one.memory),
            type=kind,
            base_score=one.score,
            score=one.score,
            label=label,
            speaker=one.memory.speaker,
            time=time or (moment(told["timestamp"]) if "timestamp" in told else None),
            origins=one.origins or ("store",),
            metadata=told,
            memory=one.memory,
        )
        for one, time, told, label in zip(found, times, metadata, labels, strict=True)
    ]


def _metadata(found: SearchResult, time: datetime | None) -> dict[str, Any]:
    metadata = {"type": found.memory.kind, **found.memory.metadata}
    if time is not None:
        metadata["timestamp"] = time.isoformat()
    if (feedback := found.feedback) is not None:
        metadata["feedback"] = {
            "score": feedback.score,
            "timestamp": feedback.time.isoformat() if feedback.time else None,
        }
    return metadata


def _text(memory: Memory) -> str:
    """Return the text; of what was said in a session on a day that is known, with the dates that its words mean."""
    if memory.session_id is None or memory.time is None:
        return memory.text
    return dated(memory.text, day_of(memory.time))


Payload = dict[str, Any]


class SomaBrain(Protocol):
    """Defines a client of SomaBrain. Any exception counts as a failure of the memory."""

    async def context_evaluate(self, payload: Payload) -> Mapping[str, Any]:
        """Call ``POST /context/evaluate``; a client without it is asked to ``recall``, with persona and threshold."""
        ...

    async def remember_batch(self, payload: Payload) -> Any:
        """Call ``POST /memory/remember/batch``."""
        ...


@runtime_checkable
class KeptBySomaBrain(Protocol):
    """Defines a memory store that SomaBrain keeps: turns ask it as is documented for turns, not as searches do."""

    @property
    def name(self) -> str: ...

    @property
    def somabrain(self) -> SomaBrain: ...


class SomaBrainSource:
    """Asks a :class:`SomaBrain` for a turn's memories.

    The documented request names no user and no persona, so what an answer says is another one's is left out here; with
    the scope ``session``, so is what it says is another session's.
    """

    def __init__(
        self, somabrain: SomaBrain, name: str = "somabrain", scope: Literal["tenant", "session"] = "tenant"
    ) -> None:
        self.name = name
        self._somabrain = somabrain
        self._owners = ("user_id", "persona_id") if scope == "tenant" else ("user_id", "persona_id", "session_id")
        self._evaluates = hasattr(somabrain, "context_evaluate")

    async def find(self, query: RetrievalQuery) -> list[Candidate]:
        candidates = read_candidates(await self._answer(query), query.threshold)
        return [one for one in candidates if self._may_show(one, query) and _passes(one, query.where)]

    async def _answer(self, query: RetrievalQuery) -> Mapping[str, Any]:
        payload: Payload = {
            "tenant_id": query.tenant_id,
            "session_id": query.session_id,
            "query": query.query,
            "top_k": query.top_k,
        }
        if self._evaluates:
            try:
                return await self._somabrain.context_evaluate(payload)
            except UnknownCall:
                self._evaluates = False
        recall: Any = self._somabrain
        answer: Mapping[str, Any] = await recall.recall(
            payload | {"persona_id": query.persona_id, "threshold": query.threshold}
        )
        return answer

    def _may_show(self, candidate: Candidate, query: RetrievalQuery) -> bool:
        return all(candidate.metadata.get(name) in (None, getattr(query, name)) for name in self._owners)

    async def warm_up(self) -> None:
        """Do nothing: every question would count as one of a turn's."""

    async def remember(self, record: MemoryRecord) -> None:
        owner = {"user_id": record.user_id} if record.user_id is not None else {}
        memory: Payload = {
            "type": record.kind,
            "text": record.text,
            "session_id": record.session_id,
            "persona_id": record.persona_id,
            "tags": list(record.tags),
            "metadata": {**record.metadata, **owner},
        }
        await self._somabrain.remember_batch({"tenant_id": record.tenant_id, "memories": [memory]})


def read_candidates(answer: object, unscored: float = 0.0) -> list[Candidate]:
    """Return the candidates of an answer; one without a score is taken to be ``unscored`` similar, and no more."""
    return [_candidate_of(entry, unscored) for entry in read_entries(answer)]


def _candidate_of(entry: SomaBrainEntry, unscored: float) -> Candidate:
    told = entry.metadata.get("speaker")
    speaker = told if isinstance(told, str) else None
    return Candidate(
        id=str(entry.metadata.get("id") or entry.id or f"somabrain-{entry.place + 1}"),
        text=entry.text,
        base_score=unscored if entry.score is None else entry.score,
        label=label_of(entry.metadata, speaker, entry.time),
        speaker=speaker,
        time=entry.time,
        origins=("somabrain",),
        metadata=entry.metadata,
    )
