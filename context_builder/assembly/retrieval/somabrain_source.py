"""SomaBrain as a turn's memory: its payloads and its answers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from context_builder.assembly.candidate import Candidate, label_of
from context_builder.assembly.retrieval.source import MemoryRecord, RetrievalQuery
from context_builder.timestamps import moment

Payload = dict[str, Any]

_TEXT_KEYS: Final = ("text", "content", "value")


class SomaBrain(Protocol):
    """A client of SomaBrain. Any exception counts as a failure of the memory."""

    async def context_evaluate(self, payload: Payload) -> Mapping[str, Any]:
        """``POST /context/evaluate``; a client without it is asked to ``recall``, with persona and threshold too."""
        ...

    async def remember_batch(self, payload: Payload) -> Any:
        """``POST /memory/remember/batch``."""
        ...


class SomaBrainMemory:
    """Asks a :class:`SomaBrain` for what fits a turn."""

    name = "somabrain"

    def __init__(self, somabrain: SomaBrain) -> None:
        self._somabrain = somabrain

    async def find(self, wanted: RetrievalQuery) -> list[Candidate]:
        payload: Payload = {
            "tenant_id": wanted.tenant_id,
            "session_id": wanted.session_id,
            "query": wanted.query,
            "top_k": wanted.top_k,
        }
        if (evaluate := getattr(self._somabrain, "context_evaluate", None)) is not None:
            answer = await evaluate(payload)
        else:
            answer = await self._somabrain.recall(  # type: ignore[attr-defined]
                payload | {"persona_id": wanted.persona_id, "threshold": wanted.threshold}
            )
        return read_candidates(answer, wanted.threshold)

    async def warm_up(self) -> None:
        """Nothing: every question would count as one of a turn's."""

    async def remember(self, recollection: MemoryRecord) -> None:
        memory: Payload = {
            "type": recollection.kind,
            "text": recollection.text,
            "session_id": recollection.session_id,
            "persona_id": recollection.persona_id,
            "tags": list(recollection.tags),
            "metadata": dict(recollection.metadata),
        }
        await self._somabrain.remember_batch({"tenant_id": recollection.tenant_id, "memories": [memory]})


def read_candidates(answer: object, unscored: float = 0.0) -> list[Candidate]:
    """The candidates of an answer, from ``candidates[]`` and ``results[]``; entries without a text are passed over.

    One without a score that is a number is taken to be as similar as was asked for, ``unscored``, and no more.
    """
    entries = enumerate(_entries(answer))
    return [candidate for place, entry in entries if (candidate := _candidate(entry, place, unscored))]


def _entries(answer: object) -> Iterator[Mapping[str, Any]]:
    if not isinstance(answer, Mapping):
        return
    for key in ("candidates", "results"):
        found = answer.get(key)
        if isinstance(found, list | tuple):
            yield from (entry for entry in found if isinstance(entry, Mapping))


def _candidate(entry: Mapping[str, Any], place: int, unscored: float) -> Candidate | None:
    text = next((entry[key] for key in _TEXT_KEYS if isinstance(entry.get(key), str) and entry[key].strip()), None)
    if text is None:
        return None
    metadata = entry.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, Mapping) else {}
    return Candidate(
        id=str(entry["id"]) if entry.get("id") is not None else f"somabrain-{place + 1}",
        text=text,
        base_score=_number(entry.get("score"), unscored),
        label=label_of(metadata),
        time=moment(metadata.get("timestamp") or metadata.get("created_at")),
        origins=("somabrain",),
        metadata=metadata,
    )


def _number(value: object, otherwise: float) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return otherwise
    return number if math.isfinite(number) else otherwise
