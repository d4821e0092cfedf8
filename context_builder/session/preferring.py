"""What people say they want, found in the messages that are about to be remembered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import structlog

from context_builder.memory.memory import Memory
from context_builder.memory.preferences import stated_preferences
from context_builder.session.message import UNKNOWN_SPEAKER

log = structlog.get_logger(__name__)


def preferences_in(memories: Iterable[Memory]) -> list[Memory]:
    """The preferences that message memories state, oldest first; of each user and topic the last.

    They are the user's whom the message names, else the speaker's. What the assistant says is nobody's preference,
    nor is what somebody unknown says.
    """
    found: dict[str, Memory] = {}
    for memory in memories:
        for preference in _stated(memory):
            found.pop(preference.id, None)
            found[preference.id] = preference
    return list(found.values())


def _stated(memory: Memory) -> Iterator[Memory]:
    user_id = memory.metadata.get("user_id", memory.speaker)
    if memory.kind != "message" or memory.metadata.get("consilience") or user_id in (None, UNKNOWN_SPEAKER):
        return
    try:
        preferences = stated_preferences(memory.text)
    except Exception as error:  # noqa: BLE001 whatever a pattern stumbles over, the message itself is remembered
        log.error("preferences.failed", memory=memory.id, kind=type(error).__name__)
        return
    for preference in preferences:
        stated = preference.as_memory(user_id, source=memory.id, time=memory.time)
        yield replace(stated, session_id=memory.session_id, speaker=memory.speaker)
