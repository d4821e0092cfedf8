"""SomaBrain as a turn's memory: its payloads and its answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from context_builder.assembly.candidate import Candidate, label_of
from context_builder.assembly.retrieval.source import MemoryRecord, RetrievalQuery
from context_builder.memory.somabrain_answer import read_entries

Payload = dict[str, Any]


class SomaBrain(Protocol):
    """Defines a client of SomaBrain. Any exception counts as a failure of the memory."""

    async def context_evaluate(self, payload: Payload) -> Mapping[str, Any]:
        """Call ``POST /context/evaluate``; a client without it is asked to ``recall``, with persona and threshold."""
        ...

    async def remember_batch(self, payload: Payload) -> Any:
        """Call ``POST /memory/remember/batch``."""
        ...


class SomaBrainSource:
    """Asks a :class:`SomaBrain` for a turn's memories."""

    name = "somabrain"

    def __init__(self, somabrain: SomaBrain) -> None:
        self._somabrain = somabrain

    async def find(self, query: RetrievalQuery) -> list[Candidate]:
        payload: Payload = {
            "tenant_id": query.tenant_id,
            "session_id": query.session_id,
            "query": query.query,
            "top_k": query.top_k,
        }
        if (evaluate := getattr(self._somabrain, "context_evaluate", None)) is not None:
            answer = await evaluate(payload)
        else:
            answer = await self._somabrain.recall(  # type: ignore[attr-defined]
                payload | {"persona_id": query.persona_id, "threshold": query.threshold}
            )
        return read_candidates(answer, query.threshold)

    async def warm_up(self) -> None:
        """Do nothing: every question would count as one of a turn's."""

    async def remember(self, record: MemoryRecord) -> None:
        memory: Payload = {
            "type": record.kind,
            "text": record.text,
            "session_id": record.session_id,
            "persona_id": record.persona_id,
            "tags": list(record.tags),
            "metadata": dict(record.metadata),
        }
        await self._somabrain.remember_batch({"tenant_id": record.tenant_id, "memories": [memory]})


def read_candidates(answer: object, unscored: float = 0.0) -> list[Candidate]:
    """Return the candidates of an answer; one without a score is taken to be ``unscored`` similar, and no more."""
    return [
        Candidate(
            id=f"somabrain-{entry.place + 1}" if entry.id is None else entry.id,
            text=entry.text,
            base_score=unscored if entry.score is None else entry.score,
            label=label_of(entry.metadata),
            time=entry.time,
            origins=("somabrain",),
            metadata=entry.metadata,
        )
        for entry in read_entries(answer)
    ]
