"""How long a failed summary waits, and what the last resort summarized is summarized again when the model works."""

from __future__ import annotations

import pytest

from context_builder.analysis.analyst import DraftPoint, SummaryResult
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.summary_scheduler import MOST_TRIES, SHORTEST_WAIT, DegradedBacklog
from context_builder.session.conversation.tasks import SummaryTask
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.testing import ManualClock
from tests.session.saying import ARRIVAL, conversation, hear, message, points_of, quoting, words


@pytest.mark.parametrize(("retry_after", "wait"), [(None, 15.0), (4.0, 4.0), (0.0, SHORTEST_WAIT), (900.0, 15.0)])
def test_a_failed_summary_waits_for_the_model_but_no_longer_than_usual(
    clock: ManualClock, retry_after: float | None, wait: float
) -> None:
    subject = conversation(clock, summary_retry=15.0)
    hear(subject, clock, 1)
    clock.advance(120)
    work = subject.next_summary_task()
    assert work is not None
    subject.fail(work, clock.now(), retry_after)
    assert not subject.summary_due(clock.advance(wait - 0.01))
    assert subject.summary_due(clock.advance(0.02))


def test_failures_are_counted_until_a_summary_succeeds(clock: ManualClock) -> None:
    subject = conversation(clock, pending_max=1, summary_retry=15.0)
    hear(subject, clock, 1, 2)
    clock.advance(120)
    for expected in (False, True, False):
        work = subject.next_summary_task()
        assert work is not None
        assert work.last_resort is expected
        if expected:
            subject.finish(work, points_of(work), clock.now())
            hear(subject, clock, 3, 4)
        else:
            subject.fail(work, clock.now())
        clock.advance(120)


def test_whoever_is_in_a_hurry_does_not_wait(clock: ManualClock) -> None:
    subject = conversation(clock, summary_retry=15.0)
    hear(subject, clock, 1)
    clock.advance(120)
    work = subject.next_summary_task()
    assert work is not None
    subject.fail(work, clock.now())
    assert not subject.summary_due(clock.now())
    subject.close()
    assert subject.summary_due(clock.now())


def next_summary_task(subject: Conversation, clock: ManualClock) -> SummaryTask:
    assert subject.summary_due(clock.now())
    work = subject.next_summary_task()
    assert work is not None
    return work


def degraded(clock: ManualClock, **rules: int) -> Conversation:
    """One to four were summarized by the last resort: the model failed while more waited than may."""
    subject = conversation(clock, pending_max=3, **rules)
    hear(subject, clock, 1, 2, 3, 4)
    clock.advance(121)
    subject.fail(next_summary_task(subject, clock), clock.now())
    clock.advance(16)
    work = next_summary_task(subject, clock)
    assert work.last_resort
    point = DraftPoint("about all of it", quoting(*(entry.id for entry in work.entries)))
    subject.finish(work, SummaryResult((point,), "text"), clock.now())
    subject.take_changes()
    return subject


def model_works(subject: Conversation, clock: ManualClock, number: int) -> None:
    """One more message, and the model summarizes it."""
    hear(subject, clock, number)
    clock.advance(121)
    work = next_summary_task(subject, clock)
    assert [entry.number for entry in work.entries] == [number]
    subject.finish(work, points_of(work), clock.now())


def texts(subject: Conversation) -> list[tuple[int, ...]]:
    return [point.messages for point in subject.summary.ledger.points]


def test_nothing_is_done_again_while_the_model_does_not_work() -> None:
    clock = ManualClock()
    subject = degraded(clock)
    clock.advance(1000)
    assert not subject.summary_due(clock.now())
    assert subject.summary.degraded_messages == 4


def test_its_points_take_the_place_of_the_last_resorts() -> None:
    clock = ManualClock()
    subject = degraded(clock)
    model_works(subject, clock, 5)
    assert texts(subject) == [(1, 2, 3, 4), (5,)]
    work = next_summary_task(subject, clock)
    assert (work.again, work.last_resort, work.request.known) == (True, False, ())
    subject.finish(work, points_of(work), clock.now())
    assert texts(subject) == [(1,), (2,), (3,), (4,), (5,)]
    assert not subject.summary_due(clock.now())


def test_messages_count_once_and_the_better_summary_is_archived() -> None:
    clock = ManualClock()
    subject = degraded(clock)
    model_works(subject, clock, 5)
    subject.take_changes()
    work = next_summary_task(subject, clock)
    subject.finish(work, points_of(work), clock.now())
    wire = subject.summary.wire()
    assert (wire["message_count"], wire["degraded_messages"], wire["summary_seq"]) == (5, 0, 3)
    assert (wire["covers_messages"], subject.since_summary) == ([1, 5], 0)
    [row] = subject.take_changes().outbox
    assert (row.summary_seq, row.message_count) == (3, 5)


def test_a_model_that_fails_again_is_left_alone_until_it_has_summarized_something_new() -> None:
    clock = ManualClock()
    subject = degraded(clock)
    model_works(subject, clock, 5)
    subject.fail(next_summary_task(subject, clock), clock.now())
    clock.advance(1000)
    assert not subject.summary_due(clock.now())
    model_works(subject, clock, 6)
    assert next_summary_task(subject, clock).again


def test_what_fails_each_time_is_left_as_it_is() -> None:
    clock = ManualClock()
    subject = degraded(clock)
    for number in range(5, 5 + MOST_TRIES):
        model_works(subject, clock, number)
        work = next_summary_task(subject, clock)
        assert work.again
        subject.fail(work, clock.now())
        clock.advance(16)
    model_works(subject, clock, 100)
    assert not subject.summary_due(clock.now())
    assert subject.summary.degraded_messages == 4


def test_a_degraded_reading_changes_nothing() -> None:
    clock = ManualClock()
    subject = degraded(clock)
    model_works(subject, clock, 5)
    work = next_summary_task(subject, clock)
    subject.finish(work, SummaryResult((), "text", degraded=True), clock.now())
    assert texts(subject) == [(1, 2, 3, 4), (5,)]
    assert not subject.summary_due(clock.now())


def test_only_the_newest_are_at_hand() -> None:
    look = DegradedBacklog(12, words)
    entries = [BufferedMessage(n, message(n), ARRIVAL) for n in (1, 2, 3, 4)]  # five words each
    look.summarized(entries, degraded=True)
    assert [entry.number for entry in look.at_hand] == [3, 4]
    look.done(entries[2:3])
    look.summarized([], degraded=False)
    assert look.is_due
    look.done(entries[3:])
    assert not look.is_due


def test_what_is_not_summarized_yet_comes_first_when_the_session_ends() -> None:
    clock = ManualClock()
    subject = degraded(clock)
    model_works(subject, clock, 5)
    hear(subject, clock, 6)
    subject.close()
    work = next_summary_task(subject, clock)
    assert ([entry.number for entry in work.entries], work.again) == ([6], False)


def test_after_a_degraded_reading_what_is_said_next_is_summarized_all_the_same() -> None:
    clock = ManualClock()
    subject = degraded(clock)
    model_works(subject, clock, 5)
    work = next_summary_task(subject, clock)
    subject.finish(work, SummaryResult((), "text", degraded=True), clock.now())
    model_works(subject, clock, 6)
    assert texts(subject) == [(1, 2, 3, 4), (5,), (6,)]


def test_what_was_corrected_takes_turns_with_a_backlog_that_never_ends(clock: ManualClock) -> None:
    subject = conversation(clock, summary_input=60)
    hear(subject, clock, 1)
    clock.advance(121)
    (summarized,) = (work := next_summary_task(subject, clock)).entries
    subject.finish(work, points_of(work), clock.now())
    hear(subject, clock, *range(2, 60))
    clock.advance(121)
    turns = []
    for _ in range(4):
        subject._summary_scheduler.summarize_again(summarized)
        work = next_summary_task(subject, clock)
        turns.append(next(entry.number for entry in work.entries) if work.corrected else "new")
        subject.finish(work, points_of(work), clock.now())
    assert turns == [1, "new", 1, "new"]
