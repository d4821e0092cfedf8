"""SomaBrain as a memory store, within its three documented calls."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from context_builder.errors import CannotForget, MemoryRejected
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery, Rating, SearchResult
from context_builder.memory.rows import storable
from context_builder.memory.somabrain import Payload, SomaBrainClient
from context_builder.timestamps import in_utc, moment

BATCH: Final = 200
"""Most memories in one call."""

_TEXT_KEYS: Final = ("text", "content", "value")
_OURS: Final = ("id", "kind", "session_id", "user_id", "speaker", "position", "tags")
_OLDEST: Final = datetime.min.replace(tzinfo=UTC)


class SomaBrainStore:
    """Keeps memories in SomaBrain. See :class:`~context_builder.memory.memory.MemoryStore`.

    What its documented bodies have no field for (id, speaker, time, position) goes into a memory's metadata and is
    read there again. Of several memories with one id the best is found, because SomaBrain may keep twice what is
    remembered twice. A filter applies to what SomaBrain gives, which is then asked for ``OVERSAMPLE`` times as much.
    It documents no way to delete, so :meth:`forget` raises :class:`~context_builder.errors.CannotForget`, and none to
    rate, so :meth:`rate` raises :class:`~context_builder.errors.MemoryRejected`.
    """

    OVERSAMPLE: Final = 4

    def __init__(self, client: SomaBrainClient) -> None:
        self._client = client

    @property
    def name(self) -> str:
        return self._client.name

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        for start in range(0, len(memories), BATCH):
            batch = [_payload(memory) for memory in memories[start : start + BATCH]]
            await self._client.remember_batch({"tenant_id": tenant_id, "memories": batch})

    async def search(self, tenant_id: str, query: MemoryQuery) -> list[SearchResult]:
        where = query.filter
        is_narrow = where != MemoryFilter(session_id=where.session_id, persona_id=where.persona_id)
        asked: Payload = {
            "tenant_id": tenant_id,
            "session_id": where.session_id,
            "persona_id": where.persona_id,
            "query": query.text,
            "top_k": query.limit * (self.OVERSAMPLE if is_narrow else 1),
            "threshold": query.threshold,
        }
        best: dict[str, SearchResult] = {}
        for found in _found(await self._client.recall(asked)):
            known = best.get(found.memory.id)
            if _passes(found.memory, where) and (known is None or found.score > known.score):
                best[found.memory.id] = found
        if query.text.strip():
            ordered = sorted(best.values(), key=lambda found: -found.score)
        else:
            ordered = sorted(best.values(), key=lambda found: found.memory.time or _OLDEST, reverse=True)
        return ordered[: query.limit]

    async def rate(self, tenant_id: str, ratings: Sequence[Rating]) -> None:
        if ratings:
            raise MemoryRejected(f"{self.name} documents no way to rate memories")

    async def forget(self, tenant_id: str, *, ids: Sequence[str] = (), filter: MemoryFilter | None = None) -> int:  # noqa: A002
        if not ids and filter is None:
            return 0
        raise CannotForget(f"{self.name} documents no way to delete memories; delete them there")

    async def close(self) -> None:
        await self._client.close()


def _payload(memory: Memory) -> Payload:
    ours = {name: getattr(memory, name) for name in _OURS}
    ours["timestamp"] = memory.time.isoformat() if memory.time is not None else None
    known = {name: value for name, value in ours.items() if value is not None}
    payload: Payload = storable(
        {
            "type": memory.kind,
            "text": memory.text,
            "session_id": memory.session_id,
            "persona_id": memory.metadata.get("persona_id"),
            "tags": memory.tags,
            "metadata": {**memory.metadata, **known},
        }
    )
    return payload


def _found(answer: Mapping[str, Any]) -> Iterator[SearchResult]:
    """The memories of an answer, from ``candidates[]`` and ``results[]``; entries without a text are passed over."""
    for key in ("candidates", "results"):
        entries = answer.get(key)
        for entry in entries if isinstance(entries, list) else ():
            text = _text(entry) if isinstance(entry, Mapping) else None
            if text is not None:
                yield SearchResult(_memory(entry, text), _score(entry.get("score")), ("somabrain",))


def _memory(entry: Mapping[str, Any], text: str) -> Memory:
    held = entry.get("metadata")
    metadata = dict(held) if isinstance(held, Mapping) else {}
    ours = {name: metadata.pop(name, None) for name in _OURS}
    time = metadata.get("timestamp") or metadata.get("created_at")
    position, tags = ours["position"], ours["tags"]
    return Memory(
        id=str(ours["id"] or entry.get("id") or f"somabrain {text[:80]}"),
        text=text,
        kind=str(ours["kind"] or entry.get("type") or "memory"),
        session_id=_name(ours["session_id"]),
        user_id=_name(ours["user_id"]),
        speaker=_name(ours["speaker"]),
        time=moment(time),
        position=position if isinstance(position, int) else None,
        tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
        metadata=metadata,
    )


def _passes(memory: Memory, where: MemoryFilter) -> bool:
    """Whether it is known to meet the filter; a memory that tells no session is SomaBrain's to have looked after."""
    return (
        (where.session_id is None or memory.session_id in (None, where.session_id))
        and where.lets_through(memory.user_id, _name(memory.metadata.get("persona_id")))
        and (not where.kinds or memory.kind in where.kinds)
        and set(where.tags) <= set(memory.tags)
        and (where.since is None or (memory.time is not None and memory.time >= in_utc(where.since)))
        and (where.until is None or (memory.time is not None and memory.time < in_utc(where.until)))
    )


def _text(entry: Mapping[str, Any]) -> str | None:
    return next((entry[key] for key in _TEXT_KEYS if isinstance(entry.get(key), str) and entry[key].strip()), None)


def _name(value: object) -> str | None:
    return None if value is None else str(value)


def _score(value: object) -> float:
    try:
        score = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(max(score, 0.0), 1.0) if math.isfinite(score) else 0.0
