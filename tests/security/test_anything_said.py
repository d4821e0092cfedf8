"""Nothing that anybody can say stops a session: all that reads it is given whatever hypothesis thinks of."""

from __future__ import annotations

import json
from collections.abc import Sequence

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from context_builder.analysis.analyst import AnalystMessage, DomainResult, KeywordResult, SummaryResult
from context_builder.analysis.text.domains import score_domains
from context_builder.analysis.text.keywords import keywords, topic_keywords
from context_builder.analysis.text.summary import Digest
from context_builder.archive.archive import SummaryRow, as_record
from context_builder.memory.preferences import stated_preferences
from context_builder.memory.rows import as_row
from context_builder.redaction.secrets import SecretRedactor
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.memory_batch import MemoryBatch, preferences_in
from context_builder.session.conversation.state import (
    conversation_state,
    restore,
    take_session_state,
    write_head,
    write_order,
)
from context_builder.session.messages.message import MAX_NUMBER, Message, from_fields
from context_builder.testing import ManualClock
from context_builder.tokens.counter import count_tokens
from tests.security.anything import messages, misspelt, texts

RULES = SessionConfig(feed_memory=True, buffer_max=3, consilience_max=2, summary_budget=60, summary_input=400)
REDACTOR = SecretRedactor()


def heard(said: Sequence[dict[str, object]], clock: ManualClock) -> Conversation:
    """The conversation after these messages, each once, and after a restart."""
    subject = Conversation("monday", RULES, clock.now(), count_tokens)
    decoded: list[Message] = [from_fields(each, clock.now()) for each in said if str(each["text"]).strip()]
    subject.receive(decoded, clock.now())
    assert all(-1 < (one.number or 0) <= MAX_NUMBER for one in decoded)
    understand(subject, clock)
    subject.everything_changed()
    fields = subject.take_changes().encoded_fields()
    fields |= {"head": write_head(subject), "order": write_order(subject)}
    return restore("monday", fields, 0, RULES, clock.now(), count_tokens)


def understand(subject: Conversation, clock: ManualClock) -> None:
    """Keywords and domains, by plain text analysis."""
    while (work := subject.next_keyword_task(clock.now())) is not None:
        found = tuple(keywords(one.text, one.recurring) for one in work.messages)
        subject.finish(work, KeywordResult(found, "text"), clock.now())
    domains = subject.next_domain_task(clock.now(), at_once=True)
    if domains is not None:
        spoken = [one.text for one in domains.messages]
        topic = topic_keywords(spoken, {one.speaker for one in domains.messages})
        subject.finish(domains, DomainResult(score_domains(spoken).confidence(), topic, "text"), clock.now())


def summarize(subject: Conversation, clock: ManualClock) -> None:
    """All that there is, part by part."""
    subject.close()
    while (work := subject.next_summary_task()) is not None:
        digest = Digest(known=work.request.known, topic_keywords=work.request.topic_keywords)
        digest.add(work.request.messages)
        subject.finish(work, SummaryResult(tuple(digest.points()), "text"), clock.now())


@given(st.lists(messages, min_size=1, max_size=6))
def test_it_is_published_summarized_archived_and_remembered(said: list[dict[str, object]]) -> None:
    clock = ManualClock()
    subject = heard(said, clock)
    summarize(subject, clock)
    state = orjson.loads(bytes(take_session_state(subject, 1, clock.now())))
    assert state["rolling_summary"]["message_count"] <= len(said)
    assert orjson.loads(conversation_state(subject, clock.now()))["session_id"] == "monday"
    changes = subject.take_changes()
    for row in changes.outbox:
        read = SummaryRow.model_validate_json(row.model_dump_json())
        assert read == row
        assert "\x00" not in json.loads(json.dumps(as_record(read)))["summary_text"]
    for part in changes.memory_outbox:
        again = MemoryBatch.decode(part.encode())
        assert [one.text for one in again.memories] == [one.text for one in part.memories]
        for memory in [*again.memories, *preferences_in(again.memories).memories.values()]:
            assert len(as_row(memory)["user_id"] or "") <= 200
            assert b"\x00" not in orjson.dumps(as_row(memory))


@given(texts)
def test_it_is_redacted(said: str) -> None:
    assert isinstance(REDACTOR.redact(said), str)


@settings(max_examples=settings.default.max_examples * 3)
@given(misspelt() | texts)
def test_its_preferences_are_found(said: str) -> None:
    assert all(preference.topic and preference.text for preference in stated_preferences(said))


@given(texts)
def test_its_tokens_are_counted(said: str) -> None:
    assert count_tokens(said) == count_tokens(said) <= len(said.encode("utf-8", "replace"))
    assert bool(count_tokens(said)) == bool(said)


@given(texts, texts)
def test_its_speaker_may_be_called_anything(said: str, speaker: str) -> None:
    digest = Digest()
    digest.add([AnalystMessage(1, speaker, said)])
    assert all(point.cites == (1,) for point in digest.points())
