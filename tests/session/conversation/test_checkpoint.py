"""A conversation written down and continued by another process is the same conversation."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from context_builder.errors import StoreError
from context_builder.session.config import SessionConfig
from context_builder.session.conversation import checkpoint
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.published_state import session_state
from context_builder.testing import ManualClock
from tests.session.saying import (
    TEXT,
    advice,
    conversation,
    hear,
    infer,
    keywords_for,
    message,
    numbers,
    summarize,
    words,
)


def written(subject: Conversation) -> dict[str, bytes]:
    """The checkpoint, as if every field had been written by one commit."""
    subject.everything_changed()
    fields = subject.take_changes().encoded_fields()
    return {**fields, "head": checkpoint.write_head(subject), "order": checkpoint.write_order(subject)}


def continued(subject: Conversation, clock: ManualClock, **rules: Any) -> Conversation:
    """The conversation in another process."""
    pending = subject.buffer.pending
    return checkpoint.restore("monday", written(subject), pending, SessionConfig(**rules), clock.now(), words)


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
    new = checkpoint.restore("monday", {}, 0, SessionConfig(), clock.now(), words)
    assert (new.received, numbers(new), new.silent_for(clock.now())) == (0, [], 0)


def test_the_continued_session_knows_how_long_the_pending_messages_are(clock: ManualClock) -> None:
    subject = conversation(clock, buffer_max=1)
    hear(subject, clock, 1, 2, 3)
    again = continued(subject, clock, buffer_max=1)
    assert again.buffer.waiting_tokens() == subject.buffer.waiting_tokens() == 3 * (1 + len(TEXT) // 3)


def test_the_continued_session_publishes_the_same_state(clock: ManualClock) -> None:
    subject = lively(clock)
    before = bytes(session_state(subject, 9, clock.now()))
    again = continued(subject, clock)
    assert bytes(session_state(again, 9, clock.now())) == before
    assert bytes(session_state(continued(again, clock), 9, clock.now())) == before


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
    again = checkpoint.restore("monday", fields, 0, SessionConfig(), now, words)
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
        checkpoint.restore("monday", fields, 0, SessionConfig(), clock.now(), words)


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
