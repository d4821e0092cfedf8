"""A conversation is written down here: as a checkpoint, with which another process continues it, and for its readers.

The checkpoint is a Redis hash: ``head`` (small, rewritten by every commit), ``order`` (only while a late
message makes it differ from the order of ids), ``summary``, ``departed`` (the newest messages that are no longer
buffered, short; only while fewer than ten are), ``m:ID`` for each buffered message, ``c:ID`` for each
assistant response, ``s:ID`` for each message that the summary cites, ``x:ID`` for each correction of a message in the
pending list and ``r:ID`` for each message to be summarized again, each written only when it changes. Scripts that move
dead letters count them there, too.
A session that was swept has left ``summary_seq`` behind, which :class:`SessionStore` reads along.

Readers poll two JSON strings (``docs/reference/wire-contract.md``); the state is in comparable pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from context_builder.analysis.analyst import DomainResult
from context_builder.clock import Instant
from context_builder.errors import StoreError
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.changes import AGAIN, CORRECTION, RESPONSE
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.domains import Topic
from context_builder.session.conversation.responses import checked_response
from context_builder.session.keys import RECEIVERS, SUMMARY_SEQS, dead_count_field
from context_builder.session.messages.buffer import PublishedEntries
from context_builder.session.messages.buffered_message import MESSAGE_FIELD, BufferedMessage
from context_builder.session.stored import HEAD, SUMMARY, Checkpoint, Head, count_of, reading
from context_builder.session.summary.citation import SOURCE, CitedMessage


def write_counters(conversation: Conversation) -> bytes:
    """Write all counters; the head and the published state have them."""
    return orjson.dumps(
        {
            "last_message_time": conversation.last_message.wall,
            "last_summary_time": conversation.last_summary.wall,
            "last_domain_inference_time": conversation.domain_tracker.last.wall,
            "messages_since_summary": conversation.since_summary,
            "messages_since_domain_inference": conversation.domain_tracker.new,
            "highest_message_number": conversation.highest_number,
            "received_messages": conversation.received,
            "dead_letters": conversation.dead_letters,
            "undeliverable": conversation.undeliverable,
            "topic_changed_at": conversation.domain_tracker.topic.changed_at,
            "domain_calls_skipped": conversation.domain_tracker.skipped,
            "analyst": conversation.analysts,
            "failing": conversation.failing.wire(),
            "ended_at": conversation.ended_at,
            "cost": orjson.Fragment(conversation.usage_totals.encoded()),
        }
    )


def restore_counters(conversation: Conversation, written: Mapping[str, Any], last_id: int, now: Instant) -> None:
    """Restore what :func:`write_counters` wrote; moments keep their age."""
    conversation.last_message = _moment(written["last_message_time"], now)
    conversation.last_summary = _moment(written["last_summary_time"], now)
    conversation.domain_tracker.last = _moment(written["last_domain_inference_time"], now)
    conversation.since_summary = written["messages_since_summary"]
    conversation.domain_tracker.new = written["messages_since_domain_inference"]
    conversation.highest_number = written["highest_message_number"]
    conversation.received = written["received_messages"]
    conversation.dead_letters = written["dead_letters"]
    conversation.domain_tracker.skipped = written["domain_calls_skipped"]
    conversation.analysts = dict(written["analyst"])
    conversation.failing.restore(written["failing"])
    conversation.ended_at = written["ended_at"]
    conversation.usage_totals.restore(written["cost"])
    conversation.last_id = last_id


def _moment(wall: float, now: Instant) -> Instant:
    """Return a published moment on both clocks; one that lies ahead (the clock was set back) counts as now."""
    return Instant(wall, now.monotonic - max(0.0, now.wall - wall))


SCHEMA_VERSION: Final = 1


def write_head(conversation: Conversation, counted: bytes | None = None) -> bytes:
    """Write everything but the summary and messages: those buffered, responses, and sources. ``counted`` are the
    counters, where they have been written already.
    """
    return orjson.dumps(
        {
            "schema_version": SCHEMA_VERSION,
            "session_id": conversation.session_id,
            "counters": orjson.Fragment(counted or write_counters(conversation)),
            "last_id": conversation.last_id,
            "pending_tokens": conversation.buffer.pending_tokens,
            "published": conversation.buffer.published_count,
            "highest_message_number": conversation.highest_number,
            "domains": {
                "confidence": dict(conversation.domain_tracker.latest.confidence),
                "keywords": conversation.domain_tracker.latest.keywords,
                "analyst": conversation.domain_tracker.latest.analyst,
                "topic": conversation.domain_tracker.topic.wire(),
            },
            **({"names": conversation.revisions.names} if conversation.revisions.names else {}),
            **({"struck": [*conversation.revisions.struck]} if conversation.revisions.struck else {}),
        }
    )


def write_order(conversation: Conversation) -> bytes:
    return orjson.dumps(conversation.buffer.order())


def restore(
    session_id: str,
    fields: Mapping[str, bytes],
    pending: int,
    rules: SessionConfig,
    now: Instant,
    count_tokens: Callable[[str], int],
) -> Conversation:
    """Return the conversation that the checkpoint's ``fields`` describe; a new one when there are none.

    Raises :class:`StoreError` for a checkpoint of a newer version, and for one that is damaged.
    """
    conversation = Conversation(session_id, rules, now, count_tokens)
    with reading(session_id, SUMMARY_SEQS, session_id):
        conversation.summary.seq = count_of(fields.get("summary_seq", b"0"))
    if "head" not in fields:
        return conversation
    version = HEAD.read(fields["head"]).get("schema_version", 0)
    if version > SCHEMA_VERSION:
        raise StoreError(f"session {session_id} was written by a newer version (schema {version}); upgrade to run it")
    stored = Checkpoint(session_id, fields)
    head = stored.read("head", HEAD.whole)
    with stored.reading("head"):
        _restore_head(conversation, head, now)
    for receiver in RECEIVERS:  # counted where they are moved, which may be later than the head
        conversation.undeliverable[receiver] = stored.read(dead_count_field(receiver), count_of, b"0")
    if "summary" in fields:
        sources = stored.by_id(SOURCE, CitedMessage.decode)
        with stored.reading("summary"):
            conversation.summary.restore(SUMMARY.whole(fields["summary"]), sources)
    entries = stored.by_id(MESSAGE_FIELD, lambda value: BufferedMessage.decode(value, now)).values()
    with stored.reading("order"):
        order = orjson.loads(fields.get("order", b"[]"))
        conversation.buffer.restore(entries, order, pending, head["pending_tokens"], head["published"])
    conversation.buffer.departed.extend(stored.read("departed", lambda value: _departed(value, now), b"[]"))
    conversation.revisions.pending_corrections |= stored.by_id(CORRECTION, read_correction)
    for entry in stored.by_id(AGAIN, lambda value: BufferedMessage.decode(value, now)).values():
        conversation.summarize_again(entry)
    conversation.responses.restore(stored.by_id(RESPONSE, checked_response))
    return conversation


def _restore_head(conversation: Conversation, head: Head, now: Instant) -> None:
    restore_counters(conversation, head["counters"], head["last_id"], now)
    domains = head["domains"]
    conversation.domain_tracker.latest = DomainResult(
        domains["confidence"], tuple(domains["keywords"]), domains["analyst"]
    )
    conversation.domain_tracker.topic = Topic.from_wire(domains["topic"])
    conversation.revisions.names = dict(head.get("names", {}))
    conversation.revisions.struck.extend(head.get("struck", ()))


def read_correction(encoded: bytes) -> tuple[str | None, str]:
    """Return the text of a corrected message, None where it stands, and its speaker."""
    text, speaker = orjson.loads(encoded)
    if not isinstance(speaker, str) or not isinstance(text, str | None):
        raise TypeError
    return text, speaker


def _departed(encoded: bytes, now: Instant) -> list[BufferedMessage]:
    return [BufferedMessage.decode(orjson.dumps(entry), now) for entry in orjson.loads(encoded)]


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


def take_session_state(
    conversation: Conversation, revision: int, now: Instant, counted: bytes | None = None
) -> PublishedState:
    """Take what has to be published: the value of ``context_builder:{session_id}:state``.

    Taking it has an effect on the buffer's publication: the next state tells how it differs from this one. ``counted``
    are the counters, where they have been written already.
    """
    topic = conversation.domain_tracker.topic
    before = orjson.dumps(
        {
            "session_id": conversation.session_id,
            "rolling_summary": orjson.Fragment(conversation.summary.encoded()),
            "consilience_responses": [*map(orjson.Fragment, conversation.responses.records.values())],
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
            # These two stay last: by its end a state is told from every other (``store/commit.py``).
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
