"""What the user likes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.preferences import held
from context_builder.assembly.published import ASSISTANT, LONG_AGO
from context_builder.assembly.stored import candidate_of
from context_builder.assembly.strategies.strategy import Request
from context_builder.memory.memory import Found, Memory, MemoryFilter, MemoryQuery
from context_builder.memory.preferences import KIND
from context_builder.timestamps import moment

MOST: Final = 200
"""Newest preferences and messages of the user, and messages of the conversation, that are looked through."""


class UserPreferencesStrategy:
    """The newest ``count`` preferences of the request's user that hold: those that are stored, and those that the user
    stated in messages, in whatever conversation where they are stored as the user's, else in the request's."""

    def __init__(self, count: int = 20) -> None:
        self._count = count

    async def candidates(self, request: Request) -> Sequence[Candidate]:
        if (user_id := request.user_id) is None:
            return []
        wheres = [MemoryFilter(user_id=user_id, kinds=(KIND,)), MemoryFilter(user_id=user_id, kinds=("message",))]
        if request.conversation_id is not None:
            wheres.append(request.where(kinds=("message",)))
        stored, *said = await asyncio.gather(*(request.search(MemoryQuery("", MOST, filter=one)) for one in wheres))
        messages = _in_order(one for found in said for one in found if _is_said_by(user_id, one.memory))
        found = await request.find_preferences(request.tenant_id, messages)
        holding = held((one.memory for one in reversed(stored)), zip(messages, found, strict=True), user_id)
        return [candidate_of(Found(one, 1.0), ContextType.USER_PREFERENCES) for one in holding[: self._count]]


def _in_order(found: Iterable[Found]) -> list[Memory]:
    unique = {one.memory.id: one.memory for one in found}.values()
    return sorted(unique, key=lambda one: (moment(one.time) or LONG_AGO, -1 if one.position is None else one.position))


def _is_said_by(user_id: str, message: Memory) -> bool:
    """Whether the message is the user's: stored as theirs, naming them, or by a speaker of that name."""
    own = message.metadata.get("role") == "assistant" or message.metadata.get("consilience")
    if own or message.speaker == ASSISTANT:
        return False
    return (message.user_id or message.metadata.get("user_id") or message.speaker) == user_id
