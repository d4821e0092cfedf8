"""The plain numbers and times of a conversation, published and checkpointed alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from context_builder.clock import Instant
from context_builder.session.conversation import Conversation


def counters(conversation: Conversation) -> dict[str, Any]:
    """All of them, as JSON takes them."""
    return {
        "last_message_time": conversation.last_message.wall,
        "last_summary_time": conversation.last_summary.wall,
        "last_domain_inference_time": conversation.inferring.last.wall,
        "messages_since_summary": conversation.since_summary,
        "messages_since_domain_inference": conversation.inferring.new,
        "highest_message_number": conversation.highest_number,
        "received_messages": conversation.received,
        "dead_letters": conversation.dead_letters,
        "undeliverable": conversation.undeliverable,
        "topic_changed_at": conversation.inferring.topic.changed_at,
        "domain_calls_skipped": conversation.inferring.skipped,
        "analyst": conversation.analysts,
        "ended_at": conversation.ended_at,
        "cost": conversation.spending.wire(),
    }


def restore_counters(conversation: Conversation, written: Mapping[str, Any], last_id: int, now: Instant) -> None:
    """Take over what :func:`counters` gave; moments keep their age."""
    conversation.last_message = _moment(written["last_message_time"], now)
    conversation.last_summary = _moment(written["last_summary_time"], now)
    conversation.inferring.last = _moment(written["last_domain_inference_time"], now)
    conversation.since_summary = written["messages_since_summary"]
    conversation.inferring.new = written["messages_since_domain_inference"]
    conversation.highest_number = written["highest_message_number"]
    conversation.received = written["received_messages"]
    conversation.dead_letters = written["dead_letters"]
    conversation.inferring.skipped = written.get("domain_calls_skipped", 0)
    conversation.analysts = dict(written["analyst"])
    conversation.ended_at = written["ended_at"]
    if "cost" in written:  # which the first versions did not write
        conversation.spending.restore(written["cost"])
    conversation.last_id = last_id


def _moment(wall: float, now: Instant) -> Instant:
    """A published moment on both clocks; one that lies ahead (the clock was set back) counts as now."""
    return Instant(wall, now.monotonic - max(0.0, now.wall - wall))
