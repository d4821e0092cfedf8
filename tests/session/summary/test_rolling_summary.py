"""Summaries of the pure conversation: when they are due, what they take and cover, and what failure leaves."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import orjson
import pytest

from context_builder.analysis.analyst import DraftPoint, SummaryResult
from context_builder.costs import Usage
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.tasks import SummaryTask
from context_builder.testing import ManualClock
from tests.session.saying import (
    START,
    advice,
    at,
    conversation,
    hear,
    infer,
    message,
    numbers,
    points_of,
    quoting,
    summarize,
    words,
)

# How long it may be


def said_at(subject: Conversation, clock: ManualClock, number: int, seconds: float) -> int:
    """Let a message be said and summarized; return the words of the summary."""
    subject.receive([message(number, timestamp=at(seconds))], clock.now())
    summarize(subject, clock)
    return words(subject.summary.ledger.render())


def test_a_summary_may_be_longer_the_longer_the_talk_is_and_never_shrinks(clock: ManualClock) -> None:
    subject = conversation(clock, summary_budget=10, summary_growth=20)
    lengths = [said_at(subject, clock, number, 600.0 * number) for number in range(1, 16)]
    assert lengths[3] <= 10 < lengths[10] <= lengths[-1] <= 20
    said_at(subject, clock, 16, 600.0)
    assert words(subject.summary.ledger.render()) == lengths[-1], "the clock of a message says that it is an old one"
    off = conversation(clock, summary_budget=10, summary_growth=0)
    assert max(said_at(off, clock, number, 600.0 * number) for number in range(1, 16)) <= 10


@pytest.mark.parametrize("wrong", [7200.0, -7200.0])
def test_one_wrong_clock_does_not_make_the_talk_longer(clock: ManualClock, wrong: float) -> None:
    subject = conversation(clock, summary_budget=10, summary_growth=20)
    times = [7200.0 + 10.0 * number + (wrong if number % 3 == 0 else 0.0) for number in range(1, 20)]
    assert max(said_at(subject, clock, number, time) for number, time in enumerate(times, start=1)) <= 10


# When a summary is due


def test_a_summary_is_due_when_the_oldest_message_is_two_minutes_old_though_nobody_speaks(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1)
    assert not subject.summary_due(clock.advance(119.9))
    assert subject.summary_due(clock.advance(0.1))


def test_talk_does_not_put_a_summary_off(clock: ManualClock) -> None:
    subject = conversation(clock)
    for number in range(1, 13):
        hear(subject, clock, number)
        clock.advance(10)
    assert subject.summary_due(clock.now())


def test_age_counts_from_arrival_not_from_the_timestamp(clock: ManualClock) -> None:
    subject = conversation(clock)
    subject.receive([message(1, timestamp="2001-01-01T00:00:00")], clock.now())
    assert not subject.summary_due(clock.advance(119))


def test_a_wall_clock_that_jumps_triggers_nothing(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1)
    clock.set_wall(+3600)
    assert not subject.summary_due(clock.now())
    clock.set_wall(-7200)
    assert subject.summary_due(clock.advance(120))


def test_a_full_buffer_is_summarized_only_when_it_exceeds_its_size(clock: ManualClock) -> None:
    subject = conversation(clock, buffer_max=3)
    hear(subject, clock, 1, 2, 3)
    assert not subject.summary_due(clock.now())
    hear(subject, clock, 4)
    assert subject.summary_due(clock.now())


# What a summary takes


def test_a_summary_takes_everything_there_is_at_its_trigger(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1)
    clock.advance(119)
    hear(subject, clock, 2, 3)
    assert subject.summary_due(clock.advance(1))
    summarize(subject, clock)
    assert numbers(subject) == []
    assert subject.all_summarized


def test_messages_that_arrive_while_the_model_works_stay(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1, 2)
    work = subject.next_summary_task()
    assert work is not None
    hear(subject, clock, 3)
    subject.finish(work, points_of(work), clock.now())
    assert numbers(subject) == [3]
    assert subject.since_summary == 1
    assert not subject.summary_due(clock.advance(119))


def test_a_late_message_that_arrives_while_the_model_works_stays_too(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1, 3)
    work = subject.next_summary_task()
    assert work is not None
    hear(subject, clock, 2)
    subject.finish(work, points_of(work), clock.now())
    assert numbers(subject) == [2]


def test_the_newest_messages_may_be_held_back(clock: ManualClock) -> None:
    subject = conversation(clock, summary_keep_last=2)
    hear(subject, clock, 1, 2)
    assert not subject.summary_due(clock.advance(500))
    hear(subject, clock, 3)
    assert subject.summary_due(clock.now())
    assert [said.number for said in summarize(subject, clock).request.messages] == [1]
    assert numbers(subject) == [2, 3]


def test_what_does_not_fit_one_call_is_taken_in_parts_without_waiting(clock: ManualClock) -> None:
    subject = conversation(clock, summary_input=29)  # tokens; a line has ten, the point shown nine
    hear(subject, clock, 1, 2, 3, 4, 5)
    clock.advance(120)
    summarize(subject, clock)
    hear(subject, clock, 6)
    assert subject.summary_due(clock.now())
    summarize(subject, clock)
    assert summarize(subject, clock).request.messages[-1].number == 5
    assert not subject.summary_due(clock.now())
    assert numbers(subject) == [6]


def test_names_and_the_points_that_are_shown_take_their_share_of_a_call(clock: ManualClock) -> None:
    subject = conversation(clock, summary_input=40)
    hear(subject, clock, 1, 2, 3, 4)
    assert len(summarize(subject, clock).entries) == 4
    hear(subject, clock, 5, 6, 7, 8)
    assert len(summarize(subject, clock).entries) == 3  # beside one point
    long_name = "Dr. " + "von und zu " * 2
    subject = conversation(clock, summary_input=40)
    subject.receive([message(n, speaker=long_name) for n in (1, 2, 3)], clock.now())
    assert len(summarize(subject, clock).entries) == 2


def test_a_message_larger_than_a_call_is_taken_alone(clock: ManualClock) -> None:
    subject = conversation(clock, summary_input=3)
    hear(subject, clock, 1, 2)
    assert len(summarize(subject, clock).entries) == 1


def test_pending_messages_are_taken_before_the_buffer(clock: ManualClock) -> None:
    subject = conversation(clock, buffer_max=2)
    pending = hear(subject, clock, 1, 2, 3, 4, 5).pending_added
    assert (numbers(subject), subject.buffer.pending) == ([4, 5], 3)
    assert subject.takes_pending_next
    work = subject.next_summary_task(pending)
    assert work is not None
    subject.finish(work, points_of(work), clock.now())
    changes = subject.take_changes()
    assert (subject.buffer.pending, changes.pending_trimmed) == (0, 3)
    assert not changes.dropped
    assert subject.summary_due(clock.now())
    summarize(subject, clock)
    assert subject.all_summarized


def test_messages_being_summarized_are_not_pushed_out_and_taken_twice(clock: ManualClock) -> None:
    subject = conversation(clock, buffer_max=2)
    hear(subject, clock, 1, 2)
    work = subject.next_summary_task()
    assert work is not None
    added = hear(subject, clock, 3, 4, 5).pending_added
    assert [entry.number for entry in added] == [3]
    assert [entry.number for entry in subject.buffer.published()] == [4, 5]
    subject.finish(work, points_of(work), clock.now())
    assert (numbers(subject), subject.buffer.pending, subject.summary.message_count) == ([4, 5], 1, 2)


def test_the_analyst_is_shown_the_end_of_the_ledger_and_the_topic(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1, 2, 3, 4, 5)
    infer(subject, clock)
    summarize(subject, clock)
    hear(subject, clock, 6)
    work = subject.next_summary_task()
    assert work is not None
    assert len(work.request.known) == 5
    assert work.request.topic_keywords == ("DNA",)


# What a summary says it covers


def test_coverage_is_a_hull_of_listener_numbers(clock: ManualClock) -> None:
    subject = conversation(clock)
    assert subject.summary.wire()["covers_messages"] == [0, 0]
    hear(subject, clock, 7, 3)
    subject.receive([advice(), message(None)], clock.now())
    summarize(subject, clock)
    hear(subject, clock, 40)
    summarize(subject, clock)
    summary = subject.summary.wire()
    assert (summary["covers_messages"], summary["message_count"], summary["summary_seq"]) == ([3, 40], 5, 2)


def test_number_zero_is_covered_too(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 0, 4)
    summarize(subject, clock)
    assert subject.summary.wire()["covers_messages"] == [0, 4]


def test_the_time_range_is_that_of_the_messages_in_their_own_words(clock: ManualClock) -> None:
    subject = conversation(clock)
    berlin, utc = "2025-06-01T12:00:00+02:00", "2025-06-01T11:00:00+00:00"
    subject.receive([message(1, timestamp=utc), message(2, timestamp=berlin)], clock.now())
    summarize(subject, clock)
    summary = subject.summary.wire()
    assert (summary["time_range_start"], summary["time_range_end"]) == (berlin, utc)


def test_each_summary_gives_one_row_for_the_archive(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1, 2, 3, 4, 5)
    infer(subject, clock)
    subject.take_changes()
    summarize(subject, clock)
    (row,) = subject.take_changes().outbox
    assert (row.session_id, row.summary_seq, row.message_count) == ("monday", 1, 5)
    assert (row.covers_message_start, row.covers_message_end) == (1, 5)
    assert row.summary_text == subject.summary.wire()["text"]
    assert row.domains_covered == ["Biology / Life Sciences"]


def test_a_summary_without_any_point_still_covers_its_messages(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1)
    work = subject.next_summary_task()
    assert work is not None
    subject.finish(work, SummaryResult((DraftPoint("cites nothing it was given", quoting(99)),), "stub"), clock.now())
    summary = subject.summary.wire()
    assert (summary["text"], summary["message_count"], summary["rejected_points"]) == ("", 1, 1)


def test_points_proposed_in_vain_are_counted_and_written_down(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1)
    work = subject.next_summary_task()
    assert work is not None
    subject.fail(work, clock.now(), usage=Usage(calls=1, rejected=3))
    assert b'"rejected_points":3' in subject.take_changes().encoded_fields()["summary"]
    work = subject.next_summary_task()
    assert work is not None
    subject.finish(work, replace(points_of(work), rejected=1, usage=Usage(calls=2, rejected=2)), clock.now())
    assert orjson.loads(subject.summary.encoded())["rejected_points"] == 6


# When summaries fail


def failed(subject: Conversation, clock: ManualClock) -> SummaryTask:
    work = subject.next_summary_task()
    assert work is not None
    subject.fail(work, clock.now())
    return work


def test_a_failed_summary_loses_nothing_and_is_repeated(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1, 2)
    clock.advance(120)
    work = failed(subject, clock)
    assert numbers(subject) == [1, 2]
    assert not subject.summary_due(clock.advance(14.9))
    assert subject.summary_due(clock.advance(0.1))
    again = subject.next_summary_task()
    assert again is not None
    assert again.request == work.request


def test_a_repeated_summary_takes_what_the_failed_one_took(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1)
    failed(subject, clock)
    hear(subject, clock, 2)
    summarize(subject, clock)
    assert numbers(subject) == [2]


def test_a_failing_model_is_waited_for_while_little_waits(clock: ManualClock) -> None:
    subject = conversation(clock, pending_max=3)
    hear(subject, clock, 1, 2, 3)
    failed(subject, clock)
    assert not failed(subject, clock).last_resort


def test_beyond_the_limit_the_last_resort_takes_over_and_says_so(clock: ManualClock) -> None:
    subject = conversation(clock, pending_max=3)
    hear(subject, clock, 1, 2, 3, 4)
    failed(subject, clock)
    assert summarize(subject, clock).last_resort
    assert subject.summary.wire()["degraded_messages"] == 4
    hear(subject, clock, *range(5, 10))
    assert not summarize(subject, clock).last_resort


def test_few_messages_are_too_many_when_they_are_long(clock: ManualClock) -> None:
    subject = conversation(clock, pending_max_tokens=300)
    subject.receive([message(1, "a" * 600), message(2, "b" * 200)], clock.now())
    failed(subject, clock)
    assert not failed(subject, clock).last_resort
    subject.receive([message(3, "c" * 200)], clock.now())
    assert failed(subject, clock).last_resort


def test_a_lost_pending_list_is_counted_and_not_waited_for(clock: ManualClock) -> None:
    subject = conversation(clock, buffer_max=2)
    hear(subject, clock, 1, 2, 3)
    assert subject.pending_lost() == 1
    assert (subject.buffer.pending, subject.buffer.pending_tokens, subject.since_summary) == (0, 0, 2)
    summarize(subject, clock)
    assert subject.all_summarized


# When the session closes


def test_closing_summarizes_at_once_and_keeps_nothing_back(clock: ManualClock) -> None:
    subject = conversation(clock, summary_keep_last=2)
    hear(subject, clock, 1, 2, 3)
    subject.close()
    assert subject.summary_due(clock.now())
    summarize(subject, clock)
    assert subject.all_summarized


def test_closing_does_not_wait_for_a_failing_model(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1)
    failed(subject, clock)
    subject.close()
    assert subject.summary_due(clock.now())
    assert summarize(subject, clock).last_resort


def test_the_archived_row_tells_the_hull_of_what_was_said_in_whatever_order_it_came(clock: ManualClock) -> None:
    subject = conversation(clock)
    for heard in ((5, 6), (2, 9), (4,)):
        hear(subject, clock, *heard)
        summarize(subject, clock)
    row = subject.take_changes().outbox[-1]
    assert (row.covers_message_start, row.covers_message_end, row.message_count) == (2, 9, 5)
    read = [datetime.fromisoformat(moment or "") for moment in (row.time_range_start, row.time_range_end)]
    assert [moment.timestamp() for moment in read] == [START + 2, START + 9]
    assert all(moment.tzinfo is not None for moment in read)


def test_a_summary_of_messages_without_numbers_covers_none(clock: ManualClock) -> None:
    subject = conversation(clock)
    subject.receive([message(None), advice()], clock.now())
    summarize(subject, clock)
    [row] = subject.take_changes().outbox
    assert (row.covers_message_start, row.covers_message_end, row.message_count) == (0, 0, 2)
