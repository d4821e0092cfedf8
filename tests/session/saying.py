"""What people say in these tests: short ways to make messages, conversations and deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson

from context_builder.analysis.analyst import DomainResult, DraftPoint, KeywordResult, Quote, SummaryResult
from context_builder.clock import Instant
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.changes import Changes
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.tasks import KeywordTask, SummaryTask
from context_builder.session.messages.message import Message, from_fields
from context_builder.testing import ManualClock

START = 1_700_000_000.0
"""Epoch seconds at which :class:`ManualClock` starts, and message 0 was said."""

ARRIVAL = Instant(START, 1_000.0)

BIOLOGY = DomainResult({"Biology / Life Sciences": 0.9}, ("DNA",), "stub")

TEXT = "Helicase unwinds the double helix"


def at(seconds: float) -> str:
    """The timestamp ``seconds`` after the start, as a listener writes it."""
    return datetime.fromtimestamp(START + seconds).isoformat()


def spoken(number: int | None = 1, text: str = TEXT, speaker: str = "Alice", **more: Any) -> dict[str, Any]:
    """A listener's message; one number is one second."""
    fields = {"message_number": number, "speaker": speaker, "text": text, "timestamp": at(number or 0)}
    return {**fields, **more}


def advised(text: str = "From a Biology perspective", number: int | None = 1_759_394_000_123, **more: Any) -> Any:
    """An orchestrator's contribution."""
    fields = spoken(None, text, "Consilience", type="consilience", metadata={"priority": "P0"})
    return {**fields, "message_number": number, **more}


def raw(fields: object) -> bytes:
    return orjson.dumps(fields)


def message(number: int | None = 1, text: str = TEXT, **more: Any) -> Message:
    return from_fields(spoken(number, text, **more), ARRIVAL)


def advice(text: str = "From a Biology perspective", **more: Any) -> Message:
    return from_fields(advised(text, **more), ARRIVAL)


def words(text: str) -> int:
    """A token count that anybody can do in their head."""
    return len(text.split())


def conversation(clock: ManualClock | None = None, **rules: Any) -> Conversation:
    return Conversation("monday", SessionConfig(**rules), (clock or ManualClock()).now(), words)


def hear(subject: Conversation, clock: ManualClock, *numbers: int) -> Changes:
    """Let the numbered messages arrive now; what is to be written down."""
    subject.receive([message(number) for number in numbers], clock.now())
    return subject.take_changes()


def numbers(subject: Conversation) -> list[int | None]:
    """The buffer's message numbers, in order."""
    return [entry.number for entry in subject.buffer.ordered()]


def keywords_for(work: KeywordTask, *keywords: str) -> KeywordResult:
    return KeywordResult(tuple(keywords for _ in work.messages), "stub")


def quoting(*ids: int, words: str = "so it was said") -> tuple[Quote, ...]:
    """A quote of each message."""
    return tuple(Quote(message_id, words) for message_id in ids)


def points_of(work: SummaryTask) -> SummaryResult:
    """One point a message, in its own words."""
    return SummaryResult(
        tuple(DraftPoint(said.text, quoting(said.id, words=said.text)) for said in work.request.messages), "stub"
    )


def summarize(subject: Conversation, clock: ManualClock) -> SummaryTask:
    """Have the next part summarized."""
    work = subject.next_summary_task()
    assert work is not None
    subject.finish(work, points_of(work), clock.now())
    return work


def infer(subject: Conversation, clock: ManualClock, reading: DomainResult = BIOLOGY) -> None:
    """Have the domains inferred."""
    work = subject.next_domain_task(clock.now())
    assert work is not None
    subject.finish(work, reading, clock.now())
