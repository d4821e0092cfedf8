"""What people say they want, found in the messages that are about to be remembered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import structlog

from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery
from context_builder.memory.preferences import KIND, WITHDRAWN, Preference, stated_preferences, withdrawal
from context_builder.memory.tenant import TenantMemory
from context_builder.session.message import UNKNOWN_SPEAKER

log = structlog.get_logger(__name__)

_HELD: Final = 200
"""Newest preferences of a user that may be taken back."""


@dataclass(slots=True)
class Stated:
    """What messages state: ``memories`` to keep, by id, of each user and topic the last; and what they take back."""

    memories: dict[str, Memory] = field(default_factory=dict)
    withdrawals: list[tuple[Preference, Memory]] = field(default_factory=list)
    """What is withdrawn, and by which message."""

    async def settled(self, memory: TenantMemory) -> list[Memory]:
        """All of it to be remembered; a withdrawal takes the place of what the user stated before."""
        settled = dict(self.memories)
        for user_id in {_user_of(said) for _, said in self.withdrawals}:
            where = MemoryFilter(user_id=user_id, kinds=(KIND,))
            held = [found.memory for found in await memory.search(MemoryQuery("", limit=_HELD, filter=where))]
            for preference, said in self.withdrawals:
                for one in held if _user_of(said) == user_id else ():
                    if one.id not in settled and _withdraws(preference, one):
                        settled[one.id] = withdrawal(one, said.id, said.time)
        return list(settled.values())


def preferences_in(memories: Iterable[Memory]) -> Stated:
    """The preferences that message memories state, oldest first.

    They are the user's whom the message names, else the speaker's. What the assistant says is nobody's preference,
    nor is what somebody unknown says.
    """
    stated = Stated()
    for memory in memories:
        for preference in _stated(memory):
            if preference.withdrawn:
                stated.withdrawals.append((preference, memory))
                for one in stated.memories.values():
                    if one.user_id == _user_of(memory) and _withdraws(preference, one):
                        stated.memories[one.id] = withdrawal(one, memory.id, memory.time)
                continue
            told = preference.as_memory(str(_user_of(memory)), source=memory.id, time=memory.time)
            stated.memories.pop(told.id, None)
            stated.memories[told.id] = replace(told, session_id=memory.session_id, speaker=memory.speaker)
    return stated


def _stated(memory: Memory) -> Iterator[Preference]:
    if memory.kind != "message" or memory.metadata.get("consilience") or _user_of(memory) in (None, UNKNOWN_SPEAKER):
        return
    try:
        yield from stated_preferences(memory.text)
    except Exception as error:  # noqa: BLE001 whatever a pattern stumbles over, the message itself is remembered
        log.error("preferences.failed", memory=memory.id, kind=type(error).__name__)


def _user_of(memory: Memory) -> str | None:
    user_id: str | None = memory.metadata.get("user_id", memory.speaker)
    return user_id


def _withdraws(preference: Preference, memory: Memory) -> bool:
    """Whether the memory is a preference that holds, and is taken back; a message that is read again finds it gone."""
    return WITHDRAWN not in memory.metadata and preference.withdraws(memory.text)
