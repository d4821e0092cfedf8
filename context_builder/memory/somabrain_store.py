"""SomaBrain as a memory store, within its three documented calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from context_builder.errors import CannotForget, DatabaseRejected
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery, OnEmbedded, Rating, SearchResult
from context_builder.memory.rows import storable
from context_builder.memory.somabrain import Payload, SomaBrainClient, UnknownCall
from context_builder.memory.somabrain_answer import SomaBrainEntry, read_entries

BATCH: Final = 200
"""Most memories in one call."""

_OURS: Final = ("id", "kind", "session_id", "user_id", "speaker", "position", "tags")
_OF_A_TURN: Final = ("tenant_id", "session_id", "query", "top_k")
_OLDEST: Final = datetime.min.replace(tzinfo=UTC)


class SomaBrainStore:
    """Keeps memories in SomaBrain. See :class:`~context_builder.memory.memory.MemoryStore`.

    What its documented bodies have no field for (id, speaker, time, position) goes into a memory's metadata and is
    read there again. Of several memories with one id the best is found, because SomaBrain may keep twice what is
    remembered twice. A filter applies to what SomaBrain gives, which is then asked for ``OVERSAMPLE`` times as much.
    It documents no way to delete, so :meth:`forget` raises :class:`~context_builder.errors.CannotForget`, and none to
    rate, so :meth:`rate` raises :class:`~context_builder.errors.DatabaseRejected`.
    """

    OVERSAMPLE: Final = 4
    supports_message_feed = False
    """SomaBrain documents no way to replace or delete a memory."""

    def __init__(self, client: SomaBrainClient) -> None:
        self._client = client

    @property
    def name(self) -> str:
        return self._client.name

    @property
    def somabrain(self) -> SomaBrainClient:
        """Return what turns ask: ``/context/evaluate``, as is documented for them."""
        return self._client

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
        for found in map(_result, read_entries(await self._asked(asked))):
            known = best.get(found.memory.id)
            fits = found.score >= query.threshold and _passes(where, found.memory)
            if fits and (known is None or found.score > known.score):
                best[found.memory.id] = found
        if query.text.strip():
            ordered = sorted(best.values(), key=lambda found: -found.score)
        else:
            ordered = sorted(best.values(), key=lambda found: found.memory.time or _OLDEST, reverse=True)
        return ordered[: query.limit]

    async def _asked(self, payload: Payload) -> Payload:
        """Return what ``/recall`` answers; where a server lacks it, what fits a turn."""
        try:
            return await self._client.recall(payload)
        except UnknownCall:
            return await self._client.context_evaluate({name: payload[name] for name in _OF_A_TURN})

    async def rate(self, tenant_id: str, ratings: Sequence[Rating]) -> None:
        if ratings:
            raise DatabaseRejected(f"{self.name} documents no way to rate memories")

    async def forget(self, tenant_id: str, *, ids: Sequence[str] = (), filter: MemoryFilter | None = None) -> int:  # noqa: A002
        if not ids and filter is None:
            return 0
        raise CannotForget(f"{self.name} documents no way to delete memories; delete them there")

    async def embed_missing(self, tenant_id: str, on_embedded: OnEmbedded | None = None) -> int:
        """Return 0: SomaBrain embeds by itself."""
        return 0

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


def _result(entry: SomaBrainEntry) -> SearchResult:
    metadata = entry.metadata
    ours = {name: metadata.pop(name, None) for name in _OURS}
    position, tags = ours["position"], ours["tags"]
    memory = Memory(
        id=str(ours["id"] or entry.id or f"somabrain {entry.text[:80]}"),
        text=entry.text,
        kind=str(ours["kind"] or entry.kind or "memory"),
        session_id=_name(ours["session_id"]),
        user_id=_name(ours["user_id"]),
        speaker=_name(ours["speaker"]),
        time=entry.time,
        position=position if isinstance(position, int) else None,
        tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
        metadata=metadata,
    )
    return SearchResult(memory, min(max(entry.score or 0.0, 0.0), 1.0), ("somabrain",))


def _passes(where: MemoryFilter, memory: Memory) -> bool:
    """Return whether the memory meets the filter; one that tells no session is left to SomaBrain's own filter."""
    return (where if memory.session_id is not None else replace(where, session_id=None)).passes(memory)


def _name(value: object) -> str | None:
    return None if value is None else str(value)
