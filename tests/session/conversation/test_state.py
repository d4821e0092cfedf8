"""A conversation is written down, to be continued by another process, and as its readers see it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.analysis.analyst import DomainResult
from context_builder.costs import Usage
from context_builder.domains import DOMAINS
from context_builder.errors import MessageError, StoreError
from context_builder.session import stored
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.state import (
    conversation_state,
    restore,
    take_session_state,
    write_head,
    write_order,
)
from context_builder.session.messages.message import decode
from context_builder.session.store.commit import MARK_BYTES
from context_builder.testing import ManualClock
from tests.session.saying import (
    ARRIVAL,
    BIOLOGY,
    START,
    TEXT,
    advice,
    at,
    conversation,
    hear,
    infer,
    keywords_for,
    message,
    numbers,
    points_of,
    summarize,
    words,
)
from tests.session.schemas import conforms


def written(subject: Conversation) -> dict[str, bytes]:
    """The checkpoint, as if every field had been written by one commit."""
    subject.everything_changed()
    fields = subject.take_changes().encoded_fields()
    return {**fields, "head": write_head(subject), "order": write_order(subject)}


def continued(subject: Conversation, clock: ManualClock, **rules: Any) -> Conversation:
    """The conversation in another process."""
    pending = subject.buffer.pending
    return restore("monday", written(subject), pending, SessionConfig(**rules), clock.now(), words)


def lively(clock: ManualClock) -> Conversation:
    """One that has everything: points, keywords, domains, advice, a late message, dead letters."""
    subject = conversation(clock)
    hear(subject, clock, *range(1, 6))
    infer(subject, clock)
    summarize(subject, clock)
    clock.advance(7)
    hear(subject, clock, 10, 12)
    subject.receive([advice(), message(11), message(None, timestamp="yesterday")], clock.now())
    work = subject.next_keyword_task(clock.now())
    assert work is not None
    subject.finish(work, keywords_for(work, "helicase", "double helix"), clock.now())
    subject.count_dead_letters(2)
    return subject


def test_a_session_without_a_checkpoint_is_new(clock: ManualClock) -> None:
    new = restore("monday", {}, 0, SessionConfig(), clock.now(), words)
    assert (new.received, numbers(new), new.silent_for(clock.now())) == (0, [], 0)


def test_the_continued_session_knows_how_long_the_pending_messages_are(clock: ManualClock) -> None:
    subject = conversation(clock, buffer_max=1)
    hear(subject, clock, 1, 2, 3)
    again = continued(subject, clock, buffer_max=1)
    assert again.buffer.waiting_tokens() == subject.buffer.waiting_tokens() == 3 * (1 + len(TEXT) // 3)


def test_the_continued_session_publishes_the_same_state(clock: ManualClock) -> None:
    subject = lively(clock)
    before = bytes(take_session_state(subject, 9, clock.now()))
    again = continued(subject, clock)
    assert bytes(take_session_state(again, 9, clock.now())) == before
    assert bytes(take_session_state(continued(again, clock), 9, clock.now())) == before


def test_the_continued_session_has_the_budget_of_its_summary(clock: ManualClock) -> None:
    rules = {"summary_budget": 10, "summary_growth": 20}
    subject = conversation(clock, **rules)
    for number in range(1, 13):
        subject.receive([message(number, timestamp=at(600.0 * number))], clock.now())
        summarize(subject, clock)
    again = continued(subject, clock, **rules)
    assert again.summary.ledger.render() == subject.summary.ledger.render()
    assert len(again.summary.ledger.render().split()) > 10


def test_the_budget_of_a_session_that_is_continued_again_and_again_grows(clock: ManualClock) -> None:
    rules = {"summary_budget": 10, "summary_growth": 20}
    subject = conversation(clock, **rules)
    for number in range(1, 13):
        subject.receive([message(number, timestamp=at(600.0 * number))], clock.now())
        summarize(subject, clock)
        subject = continued(subject, clock, **rules)
    assert len(subject.summary.ledger.render().split()) > 10


def test_the_order_of_late_messages_is_kept(clock: ManualClock) -> None:
    again = continued(lively(clock), clock)
    assert numbers(again)[:3] == [10, 11, 12]
    hear(again, clock, 9)
    assert numbers(again)[:4] == [9, 10, 11, 12]


def test_new_messages_get_new_ids(clock: ManualClock) -> None:
    again = continued(lively(clock), clock)
    hear(again, clock, 20)
    assert max(again.buffer.entries) == again.last_id == 11


def test_ages_and_silence_go_on_while_nobody_runs_the_session(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1)
    fields = written(subject)
    now = clock.advance(119)
    again = restore("monday", fields, 0, SessionConfig(), now, words)
    assert again.silent_for(now) == 119
    assert not again.summary_due(now)
    assert again.summary_due(clock.advance(1))


def test_a_clock_that_was_set_back_makes_nothing_older_than_now(clock: ManualClock) -> None:
    subject = lively(clock)
    clock.set_wall(-86_400)
    again = continued(subject, clock)
    assert again.silent_for(clock.now()) == 0
    assert not again.summary_due(clock.advance(119))
    assert again.summary_due(clock.advance(1))


def test_keywords_that_were_found_are_not_asked_for_again(clock: ManualClock) -> None:
    again = continued(lively(clock), clock)
    assert again.next_keyword_task(clock.now()) is None


def test_tasks_that_were_under_way_are_started_again(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, *range(1, 6))
    work = [subject.next_keyword_task(clock.now()), subject.next_domain_task(clock.now())]
    taken = subject.next_summary_task()
    again = continued(subject, clock)
    assert [again.next_keyword_task(clock.now()), again.next_domain_task(clock.now())] == work
    clock.advance(120)
    summary = again.next_summary_task()
    assert summary is not None
    assert taken is not None
    assert summary.request.messages == taken.request.messages


def test_the_oldest_part_that_was_being_summarized_still_comes_before_pending_messages(clock: ManualClock) -> None:
    subject = conversation(clock, buffer_max=2)
    hear(subject, clock, 1, 2)
    assert subject.next_summary_task() is not None
    hear(subject, clock, 3, 4, 5)
    again = continued(subject, clock, buffer_max=2)
    assert again.summary_due(clock.now())
    assert not again.takes_pending_next
    assert [said.number for said in summarize(again, clock).request.messages] == [1, 2]
    assert again.takes_pending_next


@pytest.mark.parametrize("buffer_max", [1, 9])
def test_another_limit_of_the_buffer_changes_no_order(clock: ManualClock, buffer_max: int) -> None:
    subject = conversation(clock, buffer_max=3)
    hear(subject, clock, 1, 2, 3, 4, 5)
    assert continued(subject, clock, buffer_max=buffer_max).takes_pending_next  # 1 and 2
    subject = conversation(clock, buffer_max=3)
    hear(subject, clock, 1, 2)
    assert subject.next_summary_task() is not None
    hear(subject, clock, 3, 4, 5, 6)
    again = continued(subject, clock, buffer_max=buffer_max)
    assert [said.number for said in summarize(again, clock).request.messages] == [1, 2]
    assert again.takes_pending_next  # 3


def test_a_checkpoint_of_a_newer_version_is_refused(clock: ManualClock) -> None:
    fields = written(lively(clock))
    head = orjson.loads(fields["head"])
    fields["head"] = orjson.dumps({**head, "schema_version": 2, "counters": "in another form"})
    with pytest.raises(StoreError, match=r"session monday was written by a newer version \(schema 2\); upgrade"):
        restore("monday", fields, 0, SessionConfig(), clock.now(), words)


def test_a_summary_of_messages_without_numbers_is_continued(clock: ManualClock) -> None:
    subject = conversation(clock)
    subject.receive([message(None, timestamp=None), advice()], clock.now())
    summarize(subject, clock)
    again = continued(subject, clock)
    assert again.summary.wire() == subject.summary.wire()
    assert again.summary.wire()["covers_messages"] == [0, 0]
    hear(again, clock, 4)
    summarize(again, clock)
    assert again.summary.wire()["covers_messages"] == [4, 4]


def test_dead_letters_of_outboxes_are_counted_by_receiver_in_the_continued_session(clock: ManualClock) -> None:
    subject = lively(clock)
    for count, receiver in enumerate(subject.undeliverable, start=1):
        subject.dead_lettered(receiver, count)
    assert continued(subject, clock).undeliverable == subject.undeliverable


def test_an_ended_session_stays_ended_and_its_last_reading_stands(clock: ManualClock) -> None:
    subject = lively(clock)
    subject.end(clock.now())
    again = continued(subject, clock)
    assert again.ended_at == subject.ended_at == clock.now().wall
    assert again.domain_tracker.latest == subject.domain_tracker.latest


STATE = {
    "session_id": str,
    "rolling_summary": dict,
    "raw_recent_buffer": list,
    "consilience_responses": list,
    "current_domains": list,
    "domain_confidence": dict,
    "current_keywords": list,
    "last_message_time": float,
    "last_summary_time": float,
    "last_domain_inference_time": float,
    "messages_since_summary": int,
    "messages_since_domain_inference": int,
    # beyond the contract
    "pending_messages": int,
    "highest_message_number": int,
    "received_messages": int,
    "dead_letters": int,
    "undeliverable": dict,
    "analyst": dict,
    "failing": dict,
    "ended_at": (float, type(None)),
    "cost": dict,
    "topic_changed_at": (float, type(None)),
    "domain_calls_skipped": int,
    "schema_version": int,
    "revision": int,
    "updated_at": float,
}
SUMMARY = {
    "text": str,
    "covers_messages": list,
    "message_count": int,
    "time_range_start": (str, type(None)),
    "time_range_end": (str, type(None)),
    "last_updated": (str, type(None)),
    "summary_seq": int,
    "degraded_messages": int,
    "rejected_points": int,
    "points": list,
}
ENTRY = {
    "id": int,
    "message_number": (int, type(None)),
    "speaker": str,
    "text": str,
    "timestamp": str,
    "time": float,
    "buffer_entry_time": float,
    "confidence": float,
    "type": str,
    "keywords": list,
    "domains": list,
    "domain_confidence": dict,
    "analyst": (str, type(None)),
}
RESPONSE = {
    "id": int,
    "message_number": (int, type(None)),
    "speaker": str,
    "text": str,
    "timestamp": str,
    "type": str,
    "metadata": dict,
}
CONVERSATION = {
    "session_id": str,
    "silence": bool,
    "time_since_last_message": float,
    "active_domains": list,
    "domain_confidence": dict,
    "current_keywords": list,
    "last_message_time": float,
}


def has_types(fields: Mapping[str, Any], types: Mapping[str, Any], *optional: str) -> bool:
    """Exactly these fields, each of its type; a bool is no int."""
    assert set(fields) - set(optional) == set(types)
    wrong = {
        name: fields[name]
        for name, kind in types.items()
        if not isinstance(fields[name], kind) or (isinstance(fields[name], bool) and kind is not bool)
    }
    assert not wrong
    return True


def state_of(subject: Conversation, clock: ManualClock, revision: int = 7) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(bytes(take_session_state(subject, revision, clock.now())))
    assert conforms("state", state)
    assert has_types(state, STATE)
    assert has_types(state["rolling_summary"], SUMMARY)
    assert all(has_types(entry, ENTRY, "timestamp_raw") for entry in state["raw_recent_buffer"])
    assert all(has_types(response, RESPONSE, "timestamp_raw") for response in state["consilience_responses"])
    for published in (*state["raw_recent_buffer"], *state["consilience_responses"]):
        datetime.fromisoformat(published["timestamp"])
    return state


def test_an_empty_session_publishes_the_contracts_empty_summary(clock: ManualClock) -> None:
    summary = state_of(conversation(clock), clock)["rolling_summary"]
    empty = {"text": "", "covers_messages": [0, 0], "message_count": 0}
    assert empty.items() <= summary.items()
    assert [summary[name] for name in ("time_range_start", "time_range_end", "last_updated")] == [None] * 3


def test_the_state_of_a_session_in_full_swing(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1, 2)
    summarize(subject, clock)
    hear(subject, clock, 3, 4, 5)
    subject.receive([advice()], clock.advance(2))
    infer(subject, clock)
    state = state_of(subject, clock)
    assert [entry["message_number"] for entry in state["raw_recent_buffer"][:3]] == [3, 4, 5]
    assert {entry["type"] for entry in state["raw_recent_buffer"]} == {"user", "consilience"}
    assert state["current_domains"] == ["Biology / Life Sciences"]
    assert state["domain_confidence"] == state["raw_recent_buffer"][0]["domain_confidence"]
    assert (state["last_message_time"], state["last_summary_time"]) == (START + 2, START)
    assert (state["messages_since_summary"], state["messages_since_domain_inference"]) == (4, 0)
    assert state["rolling_summary"]["points"][0]["messages"] == [1]
    assert (state["received_messages"], state["highest_message_number"], state["revision"]) == (6, 5, 7)


def leaves(fields: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Every figure by its path."""
    found: dict[str, Any] = {}
    for name, value in fields.items():
        found |= leaves(value, f"{path}{name}.") if isinstance(value, dict) and value else {f"{path}{name}": value}
    return found


def test_every_field_of_the_state_is_set_by_something(clock: ManualClock) -> None:
    subject = conversation(clock, buffer_max=3, summary_input=1000)
    before = leaves(state_of(subject, clock, revision=1))
    clock.advance(1)
    hear(subject, clock, 1, 2)
    subject.count_dead_letters(1)
    subject.dead_lettered("archive", 1)
    subject.dead_lettered("memory", 1)
    paid = Usage("gpt-unknown", 9, 5, 3, calls=1, dollars=0.5, unpriced=1)
    work = subject.next_keyword_task(clock.now())
    assert work is not None
    subject.finish(work, replace(keywords_for(work, "DNA"), usage=paid), clock.now())
    subject.charge("embeddings", paid, clock.now())
    subject.charge("compaction", paid, clock.now())
    law = DomainResult({"Political Science / Law": 1.0}, ("law",), "stub", usage=paid)
    for reading in (BIOLOGY, law, law, replace(law, repeated=True)):
        domains = subject.next_domain_task(clock.advance(31), at_once=True)
        assert domains is not None
        subject.finish(domains, reading, clock.now())
    failed = subject.next_summary_task()
    assert failed is not None
    subject.fail(failed, clock.now(), reason="the model does not answer")
    clock.advance(60)
    summary = subject.next_summary_task()
    assert summary is not None
    subject.finish(summary, replace(points_of(summary), rejected=1, degraded=True, usage=paid), clock.now())
    hear(subject, clock, 3, 4, 5, 6)
    subject.receive([advice()], clock.now())
    subject.charge("embeddings", paid, clock.advance(3600))
    subject.end(clock.now())
    after = leaves(state_of(subject, clock, revision=2))
    unset = {path for path in before if after.get(path, "") == before[path]}
    assert unset == {"session_id", "schema_version"}


def test_a_published_state_is_read_as_it_is(clock: ManualClock) -> None:
    subject = lively(clock)
    points = subject.summary.ledger.points
    points[0] = replace(points[0], merges=((7, 1_700_000_000.0), (8, 1_700_000_001.5)))
    state = state_of(continued(subject, clock), clock)
    assert state["rolling_summary"]["points"][0]["merges"] == [[7, 1_700_000_000.0], [8, 1_700_000_001.5]]
    assert stored.STATE.known(state) == state


def test_a_state_ends_with_its_revision_and_its_moment(clock: ManualClock) -> None:
    """Redis' copy is edited in place only where it ends as the state that the edits were made for does."""
    state = state_of(conversation(clock), clock)
    last = dict([*state.items()][-2:])
    assert [*last] == ["revision", "updated_at"]
    assert len(json.dumps(last | {"revision": 10**9})) <= MARK_BYTES


@pytest.mark.parametrize(
    ("speaker", "published"), [("Orchestrator", "Orchestrator"), ("Consilience", "Consilience"), (None, "Consilience")]
)
def test_a_response_carries_its_metadata_and_its_own_speaker(
    clock: ManualClock, speaker: str | None, published: str
) -> None:
    subject = conversation(clock)
    subject.receive([advice(speaker=speaker)], clock.now())
    (response,) = state_of(subject, clock)["consilience_responses"]
    assert (response["speaker"], response["metadata"]) == (published, {"priority": "P0"})
    assert response["type"] == "consilience"


def test_a_responses_unreadable_timestamp_is_published_beside_the_arrival_time(clock: ManualClock) -> None:
    subject = conversation(clock)
    subject.receive([advice(timestamp="in a minute"), advice("And another")], clock.now())
    first, second = state_of(subject, clock)["consilience_responses"]
    assert first["timestamp_raw"] == "in a minute"
    assert first["timestamp"] == clock.now().iso()
    assert "timestamp_raw" not in second


def test_an_unreadable_timestamp_is_published_beside_the_arrival_time(clock: ManualClock) -> None:
    subject = conversation(clock)
    subject.receive([message(1, timestamp="yesterday"), message(2)], clock.now())
    first, second = state_of(subject, clock)["raw_recent_buffer"]
    assert first["timestamp_raw"] == "yesterday"
    assert "timestamp_raw" not in second


def test_the_state_is_bounded_in_everything_that_grows(clock: ManualClock) -> None:
    subject = conversation(clock, buffer_max=10, consilience_max=3, summary_budget=50)
    for start in range(1, 200, 20):
        hear(subject, clock, *range(start, start + 20))
        subject.receive([advice(f"advice {start}", message_number=start)], clock.now())
        subject.buffer.pending = 0
        summarize(subject, clock)
    hear(subject, clock, *range(300, 400))
    state = state_of(subject, clock)
    assert len(state["raw_recent_buffer"]) == 10
    assert len(state["consilience_responses"]) == 3
    assert len(state["rolling_summary"]["text"].split()) <= 50
    assert state["pending_messages"] == 90


def test_the_conversation_state_names_domains_among_its_keywords(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, *range(1, 6))
    infer(subject, clock)
    published = json.loads(conversation_state(subject, clock.advance(1.2404)))
    assert conforms("conversation-state", published)
    assert has_types(published, CONVERSATION)
    assert published == {
        "session_id": "monday",
        "silence": False,
        "time_since_last_message": 1.24,
        "active_domains": ["Biology / Life Sciences"],
        "domain_confidence": {"Biology / Life Sciences": 0.9},
        "current_keywords": ["DNA", "Biology / Life Sciences"],
        "last_message_time": START,
    }


def test_silence_is_published_from_the_threshold_on(clock: ManualClock) -> None:
    subject = conversation(clock)
    assert not json.loads(conversation_state(subject, clock.advance(4)))["silence"]
    assert json.loads(conversation_state(subject, clock.advance(0.001)))["silence"]


def test_there_are_eighteen_domains() -> None:
    assert len(set(DOMAINS)) == 18


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
_names = st.sampled_from(["speaker", "message_number", "timestamp", "confidence", "type", "metadata"])
_hostile = st.dictionaries(_names, _json | st.just("consilience")).map(lambda more: {"text": "hello there", **more})


@given(st.lists(_hostile, max_size=5))
def test_types_hold_for_hostile_input(fields: list[dict[str, Any]]) -> None:
    clock = ManualClock()
    subject = conversation(clock)
    for each in fields:
        try:
            subject.receive([decode(json.dumps(each).encode(), ARRIVAL, max_bytes=10_000)], clock.now())
        except MessageError:
            subject.count_dead_letters(1)
    state = state_of(subject, clock)
    assert state["received_messages"] + state["dead_letters"] == len(fields)
    if subject.buffer.entries:
        summarize(subject, clock)
    assert state_of(subject, clock)["rolling_summary"]["message_count"] == state["received_messages"]


def test_an_empty_session_has_counted_nothing(clock: ManualClock) -> None:
    state = state_of(conversation(clock), clock)
    counted = "received_messages dead_letters messages_since_summary messages_since_domain_inference pending_messages"
    assert [state[name] for name in (*counted.split(), "highest_message_number", "domain_calls_skipped")] == [0] * 7
    assert set(state["undeliverable"].values()) == {0}
    assert (state["cost"]["dollars"], state["ended_at"], state["topic_changed_at"]) == (0, None, None)
