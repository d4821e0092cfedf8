"""SomaBrain as a turn's memory: its payloads and its answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, runtime_checkable

from context_builder.assembly.candidate import Candidate, label_of
from context_builder.assembly.retrieval.source import MemoryRecord, RetrievalQuery
from context_builder.memory.somabrain import UnknownCall
from context_builder.memory.somabrain_answer import SomaBrainEntry, read_entries

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
        return [one for one in candidates if self._may_show(one, query)]

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
