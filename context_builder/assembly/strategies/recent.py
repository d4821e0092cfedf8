"""The latest messages of a conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.salience import moment
from context_builder.assembly.stored import candidate_of
from context_builder.assembly.strategies.strategy import Request
from context_builder.memory.memory import Found, MemoryFilter, MemoryQuery

ASSISTANT: Final = "Consilience"
"""The assistant's name as a speaker."""

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class RecentMessagesStrategy:
    """The newest ``count`` messages of the request's conversation, from the memory store."""

    def __init__(self, count: int = 10) -> None:
        self._count = count

    async def candidates(self, request: Request) -> Sequence[Candidate]:
        if request.conversation_id is None:
            return []
        where = MemoryFilter(session_id=request.conversation_id, kinds=("message",))
        found = await request.search(MemoryQuery("", limit=self._count, filter=where))
        return [_message(one) for one in sorted(found, key=_place, reverse=True)[: self._count]]


class SessionMessagesStrategy:
    """The newest ``count`` messages of a session's published state, the assistant's own among them."""

    def __init__(self, state: Mapping[str, Any], count: int = 50) -> None:
        self._state = state
        self._count = count

    async def candidates(self, request: Request) -> Sequence[Candidate]:
        buffered = list(self._state.get("raw_recent_buffer") or ())
        held = {entry.get("id") or entry.get("message_number") for entry in buffered}
        spoken = [
            entry
            for entry in self._state.get("consilience_responses") or ()
            if (entry.get("id") or entry.get("message_number")) not in held
        ]
        places = {id(entry): place for place, entry in enumerate((*spoken, *buffered))}
        in_order = sorted(
            (*spoken, *buffered), key=lambda entry: (moment(entry.get("timestamp")) or _LONG_AGO, places[id(entry)])
        )
        return [_published(entry) for entry in reversed(in_order[-self._count :])]


def _message(found: Found) -> Candidate:
    candidate = candidate_of(found, ContextType.RECENT)
    role = str(candidate.metadata.get("role") or ("assistant" if candidate.speaker == ASSISTANT else "user"))
    return replace(candidate, role=role, speaker=None if role == "assistant" else candidate.speaker)


def _published(entry: Mapping[str, Any]) -> Candidate:
    own = entry.get("speaker") == ASSISTANT or entry.get("type") == "consilience"
    return Candidate(
        id=f"message-{entry.get('id') or entry.get('message_number')}",
        text=str(entry.get("text") or ""),
        type=ContextType.RECENT,
        role="assistant" if own else "user",
        speaker=None if own else str(entry.get("speaker") or "") or None,
        time=moment(entry.get("timestamp")),
        origins=("session",),
    )


def _place(found: Found) -> tuple[datetime, int]:
    memory = found.memory
    return moment(memory.time) or _LONG_AGO, -1 if memory.position is None else memory.position
