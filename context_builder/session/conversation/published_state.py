"""Readers poll these two JSON strings (``docs/reference/wire-contract.md``); the state is in comparable pieces."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from context_builder.clock import Instant
from context_builder.session.conversation.checkpoint import SCHEMA_VERSION, write_counters
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.messages.publication import PublishedEntries


@dataclass(frozen=True, slots=True, eq=False)
class PublishedState:
    """The JSON text ``before`` the buffer's entries, the entries, and the text ``after``.

    Its text can be had until the buffer changes.
    """

    before: bytes
    buffer: PublishedEntries
    after: bytes

    def __bytes__(self) -> bytes:
        return b"".join((self.before, b",".join(self.buffer.entries), self.after))

    @property
    def length(self) -> int:
        """Return the length in bytes."""
        return len(self.before) + self.buffer.length + len(self.after)


def session_state(
    conversation: Conversation, revision: int, now: Instant, counted: bytes | None = None
) -> PublishedState:
    """Return the value of ``context_builder:{session_id}:state``; ``counted`` are the counters, where they have been
    written already.

    It takes the buffer's publication: a state made before cannot be had any more, and the next tells how it differs
    from this one.
    """
    topic = conversation.domain_tracker.topic
    before = orjson.dumps(
        {
            "session_id": conversation.session_id,
            "rolling_summary": orjson.Fragment(conversation.summary.encoded()),
            "consilience_responses": list(conversation.responses.fragments()),
        }
    )
    topic_fields = orjson.dumps(
        {
            "current_domains": topic.active,
            "domain_confidence": topic.current,
            "current_keywords": conversation.domain_tracker.latest.keywords,
            "pending_messages": conversation.buffer.waiting_outside(),
        }
    )
    counted = counted or write_counters(conversation)
    end = orjson.dumps(
        {
            "schema_version": SCHEMA_VERSION,
            # These two stay last: by its end a state is told from every other (``store/state_patch.py``).
            "revision": revision,
            "updated_at": now.wall,
        }
    )
    entries = conversation.buffer.publication.take()
    after = b"],%b,%b,%b" % (topic_fields[1:-1], counted[1:-1], end[1:])
    return PublishedState(before[:-1] + b',"raw_recent_buffer":[', entries, after)


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
