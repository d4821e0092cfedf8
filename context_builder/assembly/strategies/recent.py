"""The latest messages of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.published import ASSISTANT, LONG_AGO, State, said
from context_builder.assembly.stored import candidate_of
from context_builder.assembly.strategies.strategy import Request
from context_builder.memory.memory import Found, MemoryQuery
from context_builder.timestamps import moment


class RecentMessagesStrategy:
    """The newest ``count`` messages of the request's conversation that are its user's or nobody's, from the memory
    store."""

    def __init__(self, count: int = 10) -> None:
        self._count = count

    async def candidates(self, request: Request) -> Sequence[Candidate]:
        if request.conversation_id is None:
            return []
        wanted = MemoryQuery("", limit=self._count, filter=request.where(kinds=("message",)))
        found = await request.search(wanted)
        return [_message(one) for one in sorted(found, key=_place, reverse=True)[: self._count]]


class SessionMessagesStrategy:
    """The newest ``count`` messages of a session's published state, the assistant's own among them."""

    def __init__(self, state: State, count: int = 50) -> None:
        self._state = state
        self._count = count

    async def candidates(self, request: Request) -> Sequence[Candidate]:
        return said(self._state)[: self._count]


def _message(found: Found) -> Candidate:
    candidate = candidate_of(found, ContextType.RECENT)
    own = candidate.metadata.get("role") == "assistant" or candidate.speaker == ASSISTANT
    role = "assistant" if own else "user"  # no memory speaks as the system
    return replace(candidate, role=role, speaker=None if role == "assistant" else candidate.speaker)


def _place(found: Found) -> tuple[datetime, int]:
    memory = found.memory
    return moment(memory.time) or LONG_AGO, -1 if memory.position is None else memory.position
