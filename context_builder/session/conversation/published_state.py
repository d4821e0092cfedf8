"""Readers poll these two JSON strings (``docs/reference/wire-contract.md``); the state is in comparable pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import orjson

from context_builder.clock import Instant
from context_builder.session.conversation.checkpoint import SCHEMA_VERSION, counters
from context_builder.session.conversation.conversation import Conversation


@dataclass(frozen=True)
class PublishedState:
    """Holds the JSON text ``before`` the buffer's entries, the ``entries``, joined by commas, and the text ``after``.

    An entry that did not change is the same object in the next state, so comparing two states compares pointers.
    """

    before: bytes
    entries: Sequence[bytes]
    after: bytes

    def __bytes__(self) -> bytes:
        return b"".join((self.before, b",".join(self.entries), self.after))

    @cached_property
    def length(self) -> int:
        """Return the length in bytes."""
        commas = max(0, len(self.entries) - 1)
        return len(self.before) + sum(map(len, self.entries)) + commas + len(self.after)


def session_state(conversation: Conversation, revision: int, now: Instant) -> PublishedState:
    """Return the value of ``context_builder:{session_id}:state``."""
    topic = conversation.domain_tracker.topic
    before = orjson.dumps(
        {
            "session_id": conversation.session_id,
            "rolling_summary": orjson.Fragment(conversation.summary.encoded()),
            "consilience_responses": list(conversation.responses.fragments()),
        }
    )
    after = orjson.dumps(
        {
            "current_domains": topic.active,
            "domain_confidence": topic.current,
            "current_keywords": conversation.domain_tracker.latest.keywords,
            "pending_messages": conversation.buffer.waiting_outside(),
            **counters(conversation),
            "schema_version": SCHEMA_VERSION,
            # These two stay last: by its end a state is told from every other (``store/state_patch.py``).
            "revision": revision,
            "updated_at": now.wall,
        }
    )
    return PublishedState(before[:-1] + b',"raw_recent_buffer":[', conversation.buffer.encoded(), b"]," + after[1:])


def conversation_state(conversation: Conversation, now: Instant) -> bytes:
    """Return the value of ``conversation_state:{session_id}``."""
    return orjson.dumps(
        {
            "session_id": conversation.session_id,
            "silence": conversation.is_silent(now),
            "time_since_last_message": round(conversation.silent_for(now), 3),
            "active_domains": conversation.domain_tracker.topic.active,
            "domain_confidence": conversation.domain_tracker.topic.current,
            "current_keywords": conversation.active_keywords(),
            "last_message_time": conversation.last_message.wall,
        }
    )
