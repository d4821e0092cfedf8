"""A session's messages are read in order of arrival from the memory, its outbox and the buffer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import orjson
from redis.asyncio import Redis

from context_builder.errors import EntryUnreadable
from context_builder.json_values import objects_of
from context_builder.memory.memory import Memory
from context_builder.session.client import JsonObject, SessionClient
from context_builder.session.conversation.memory_batch import MemoryBatch
from context_builder.session.keys import Keys
from context_builder.storage.redis_availability import translated
from context_builder.storage.sql_functions import SqlFunctions
from context_builder.timestamps import moment

MOST_WAITING: Final = 10_000
"""Entries of a list of Redis that are looked through; more wait only where archive and memory have long been away."""


class SessionMessages:
    """Reads what was said in the sessions of one Redis, and of one tenant in the database."""

    def __init__(self, redis: Redis, functions: SqlFunctions, tenant_id: str) -> None:
        self._redis = redis
        self._functions = functions
        self._tenant_id = tenant_id

    async def after(self, session_id: str, after: int, limit: int) -> list[JsonObject] | None:
        """Return the messages that arrived after the one with the id ``after``, oldest first; None for no such session.

        Those that are no longer in Redis come from the memory, as it keeps them.
        """
        state = await SessionClient(self._redis, session_id).remembered()
        arguments = {"session": session_id, "after": after, "most": limit}
        stored = await self._functions.call("context_said_after", self._tenant_id, arguments)
        if state is None and not stored and not await self._was_stored(session_id, after):
            return None
        waiting = await self._waiting(session_id)
        responses, buffer = (
            objects_of((state or {}).get(name)) for name in ("consilience_responses", "raw_recent_buffer")
        )
        found = _by_id([*map(_of_row, stored), *waiting, *responses, *buffer])
        return [found[number] for number in sorted(found) if number > after][:limit]

    async def _was_stored(self, session_id: str, after: int) -> bool:
        arguments = {"session": session_id, "after": -1, "most": 1}
        return after >= 0 and bool(await self._functions.call("context_said_after", self._tenant_id, arguments))

    async def _waiting(self, session_id: str) -> list[JsonObject]:
        """Return what waits for its summary outside of the buffer, and what was summarized and waits for the memory."""
        keys = Keys(session_id)
        async with translated(), self._redis.pipeline(transaction=True) as pipe:
            pipe.lrange(keys.memory_outbox, 0, MOST_WAITING - 1)
            pipe.lrange(keys.pending, 0, MOST_WAITING - 1)
            batches, pending = await pipe.execute()
        corrected = await self._corrected(keys.checkpoint) if pending else {}
        return await asyncio.to_thread(_decoded, batches, pending, corrected) if batches or pending else []

    async def _corrected(self, checkpoint: str) -> dict[int, tuple[str | None, str]]:
        """Return text and speaker of messages, by id, that were corrected while they wait for their summary."""
        async with translated():
            fields: Any = self._redis.hscan_iter(checkpoint, match="x:*", count=1_000)
            return {int(name[2:]): tuple(orjson.loads(value)) async for name, value in fields}


def _decoded(
    batches: list[bytes], pending: list[bytes], corrected: Mapping[int, tuple[str | None, str]]
) -> list[JsonObject]:
    found: dict[str, Memory] = {}
    for raw in batches:
        try:
            batch = MemoryBatch.decode(raw)
        except EntryUnreadable:
            continue
        found |= {one.id: one for one in batch.memories if one.kind == "message"}
        found |= {one.id: one.applied(found[one.id]) for one in batch.amended if one.id in found}
    waiting = [one for one in map(orjson.loads, pending) if one["text"]]  # of one that was struck nothing is left
    for one in waiting:
        if (correction := corrected.get(one["id"])) is not None:
            text, one["speaker"] = correction
            one["text"] = one["text"] if text is None else text
    return [*map(_of_memory, found.values()), *waiting]


def _by_id(messages: list[JsonObject]) -> dict[int, JsonObject]:
    """Return the messages by id; one that is there twice has the fields of both, those of the later one first."""
    found: dict[int, JsonObject] = {}
    for said in messages:
        if isinstance(number := said.get("id"), int):
            held = found.get(number, {})
            found[number] = {**held, **said} if held.get("text") == said.get("text") else said  # not of another run
    return found


def _of_row(row: Mapping[str, Any]) -> JsonObject:
    return _message(row["position"], row["text"], row["speaker"], row["said_at"], row["tags"], row["metadata"])


def _of_memory(memory: Memory) -> JsonObject:
    said_at = memory.time.isoformat() if memory.time else None
    return _message(memory.position or 0, memory.text, memory.speaker, said_at, memory.tags, memory.metadata)


def _message(
    place: int, text: str, speaker: str | None, said_at: str | None, tags: Any, metadata: Mapping[str, Any]
) -> JsonObject:
    """Return a remembered message under the names of the published state.

    What earlier versions did not remember of it has its usual value, and it came when it was said.
    """
    is_consilience = bool(metadata.get("consilience"))
    time = moment(said_at)
    return {
        "id": place,
        "message_number": metadata.get("message_number"),
        "speaker": speaker,
        "text": text,
        "timestamp": said_at,
        "buffer_entry_time": time.timestamp() if time else None,
        "confidence": 1.0,
        "type": "consilience" if is_consilience else "user",
        "keywords": list(metadata.get("keywords") or ()),
        "domains": list(tags),
        "domain_confidence": {},
        **({"metadata": {}} if is_consilience else {}),
        **metadata.get("published", {}),
    }
