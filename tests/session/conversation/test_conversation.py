"""The pure conversation: what triggers keywords and domains, what each reading changes, silence."""

from __future__ import annotations

import pytest

from context_builder.analysis.analyst import DomainResult
from context_builder.session.conversation.changes import Changes
from context_builder.session.conversation.responses import Responses
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.testing import ManualClock
from tests.session.saying import ARRIVAL, BIOLOGY, advice, conversation, hear, infer, keywords_for, message, summarize

LAW = DomainResult({"Political Science / Law": 0.8}, ("patent",), "stub")


# Keywords


def test_keywords_are_filled_in_place(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1, 2)
    work = subject.next_keyword_task(clock.now())
    assert work is not None
    subject.finish(work, keywords_for(work, "helicase"), clock.now())
    assert [entry.keywords for entry in subject.buffer.ordered()] == [["helicase"], ["helicase"]]
    assert set(subject.take_changes().fields) == {"m:1", "m:2"}
    assert subject.next_keyword_task(clock.now()) is None


def test_texts_under_ten_characters_are_never_asked_about(clock: ManualClock) -> None:
    subject = conversation(clock)
    subject.receive([message(1, "nine char"), message(2, "ten chars!")], clock.now())
    work = subject.next_keyword_task(clock.now())
    assert work is not None
    assert [said.number for said in work.messages] == [2]


def test_a_keyword_call_holds_a_batch_and_messages_are_asked_about_once(clock: ManualClock) -> None:
    subject = conversation(clock, keyword_batch=2, keyword_window=0)
    hear(subject, clock, 1, 2, 3)
    asked = [subject.next_keyword_task(clock.now()) for _ in range(3)]
    assert [[said.number for said in work.messages] if work else None for work in asked] == [[1, 2], [3], None]


def test_keywords_of_a_message_that_was_summarized_meanwhile_are_dropped(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1)
    work = subject.next_keyword_task(clock.now())
    assert work is not None
    summarize(subject, clock)
    subject.finish(work, keywords_for(work, "helicase"), clock.now())
    assert "m:1" not in subject.take_changes().fields


def test_messages_that_collect_while_keywords_fail_do_not_hurry_the_loop(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1)
    work = subject.next_keyword_task(clock.now())
    hear(subject, clock, 2)
    assert subject.next_keyword_task(clock.now()) is None
    subject.fail(work, clock.advance(1))
    assert subject.next_moment(clock.now()) > clock.now().monotonic


def test_failed_keywords_are_asked_for_again_after_a_while(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1)
    work = subject.next_keyword_task(clock.now())
    assert work is not None
    subject.fail(work, clock.now())
    assert subject.next_keyword_task(clock.advance(4.9)) is None
    assert subject.next_keyword_task(clock.advance(0.1)) == work


def test_a_reading_that_answers_something_else_is_a_programming_error(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1)
    work = subject.next_keyword_task(clock.now())
    assert work is not None
    with pytest.raises(TypeError, match="DomainResult does not answer KeywordTask"):
        subject.finish(work, BIOLOGY, clock.now())


# Domains


def test_domains_are_due_with_the_fifth_message(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1, 2, 3, 4)
    assert not subject.domains_due(clock.now())
    hear(subject, clock, 5)
    assert subject.domains_due(clock.now())


def test_domains_are_due_after_thirty_seconds_with_one_message(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1)
    assert not subject.domains_due(clock.advance(29.9))
    assert subject.domains_due(clock.advance(0.1))


def test_without_a_new_message_domains_are_never_due(clock: ManualClock) -> None:
    subject = conversation(clock)
    assert not subject.domains_due(clock.advance(3600))
    hear(subject, clock, 1, 2, 3, 4, 5)
    infer(subject, clock)
    assert not subject.domains_due(clock.advance(3600))
    hear(subject, clock, 6)
    assert subject.domains_due(clock.now())


def test_messages_that_come_during_an_inference_count_for_the_next(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1, 2, 3, 4, 5)
    work = subject.next_domain_task(clock.now())
    assert work is not None
    hear(subject, clock, 6, 7)
    assert not subject.domains_due(clock.now())
    subject.finish(work, BIOLOGY, clock.now())
    assert subject.domain_tracker.new == 2
    assert [bool(entry.domains) for entry in subject.buffer.ordered()] == [True] * 5 + [False] * 2


def test_domains_come_from_the_newest_ten_messages(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, *range(1, 26))
    work = subject.next_domain_task(clock.now())
    assert work is not None
    assert [said.number for said in work.messages] == list(range(16, 26))


def test_only_untagged_messages_are_tagged(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1, 2, 3, 4, 5)
    infer(subject, clock)
    hear(subject, clock, 6, 7, 8, 9, 10)
    infer(subject, clock, LAW)
    tags = [entry.domains for entry in subject.buffer.ordered()]
    assert tags == [["Biology / Life Sciences"]] * 5 + [["Political Science / Law"]] * 5
    assert subject.domain_tracker.latest == LAW
    assert set(subject.take_changes().fields) == {f"m:{n}" for n in range(6, 11)}


def test_consilience_counts_for_the_triggers(clock: ManualClock) -> None:
    subject = conversation(clock)
    subject.receive([advice(str(n) * 10, message_number=n) for n in range(5)], clock.now())
    assert subject.domains_due(clock.now())
    assert subject.summary_due(clock.advance(120))


def test_a_failed_inference_is_repeated_after_a_while(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1, 2, 3, 4, 5)
    work = subject.next_domain_task(clock.now())
    assert work is not None
    subject.fail(work, clock.now())
    assert not subject.domains_due(clock.advance(4.9))
    assert subject.next_domain_task(clock.advance(0.1)) == work


# Silence, waking, ending


def test_the_loop_wakes_at_the_next_moment_that_matters(clock: ManualClock) -> None:
    subject = conversation(clock, tick=1000.0, silence=4.0, domain_interval=30.0, buffer_window=120.0)
    now = clock.now().monotonic
    hear(subject, clock, 1)
    assert subject.next_moment(clock.now()) - now == pytest.approx(4.001)
    assert subject.next_moment(clock.advance(5)) - now == 30
    assert subject.next_domain_task(clock.advance(25)) is not None
    assert subject.next_moment(clock.now()) - now == 120
    assert subject.next_summary_task() is not None
    assert subject.next_moment(clock.now()) - now == 1030


def test_a_message_opens_an_ended_session_again(clock: ManualClock) -> None:
    subject = conversation(clock)
    subject.end(clock.now())
    assert subject.ended_at == clock.now().wall
    hear(subject, clock, 1)
    assert subject.ended_at is None


def test_silence_begins_when_the_threshold_is_exceeded(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1)
    assert not subject.is_silent(clock.advance(4.0))
    assert subject.is_silent(clock.advance(0.001))
    hear(subject, clock, 2)
    assert not subject.is_silent(clock.now())


def test_a_wall_clock_set_back_does_not_disturb_silence(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1)
    clock.advance(3)
    clock.set_wall(-100)
    assert subject.silent_for(clock.now()) == 3


# The assistant's responses


def test_responses_are_in_the_buffer_and_in_a_list_of_the_newest(clock: ManualClock) -> None:
    subject = conversation(clock, consilience_max=2)
    subject.receive([advice(f"perspective {n}", message_number=n) for n in range(3)], clock.now())
    assert [response["text"] for response in subject.responses.decoded()] == ["perspective 1", "perspective 2"]
    assert len(subject.buffer.entries) == 3
    changes = subject.take_changes()
    assert {"c:2", "c:3"} <= set(changes.fields)
    assert "c:1" in changes.dropped
    assert subject.highest_number == 0


def test_responses_are_bounded_in_bytes_too_but_the_newest_is_always_there() -> None:
    responses, changes = Responses(10, 1000), Changes()
    for entry_id in range(1, 9):
        said = advice("x" * 150, message_number=entry_id)
        responses.add(BufferedMessage(entry_id, said, ARRIVAL), said, changes)
        assert sum(map(len, responses.records.values())) <= 1000
    assert list(responses.records) == [6, 7, 8]
    said = advice("x" * 2000)
    responses.add(BufferedMessage(9, said, ARRIVAL), said, changes)
    assert list(responses.records) == [9]


def test_a_talk_of_another_time_is_summarized_by_its_own_clock(clock: ManualClock) -> None:
    subject = conversation(clock)
    old = [message(number, timestamp=f"2020-05-03T09:0{number}:00+00:00") for number in range(1, 4)]
    subject.receive(old[:2], clock.now())
    assert not subject.summary_due(clock.now())
    subject.receive(old[2:], clock.now())
    assert subject.summary_due(clock.now())


def test_a_talk_of_another_time_is_kept_no_longer_than_one_of_now(clock: ManualClock) -> None:
    subject = conversation(clock)
    subject.receive([message(1, timestamp="2020-05-03T09:00:00+00:00")], clock.now())
    assert not subject.summary_due(clock.advance(119))
    assert subject.summary_due(clock.advance(1))


def test_a_talk_of_now_is_kept_for_the_window_whatever_its_clock_says(clock: ManualClock) -> None:
    subject = conversation(clock)
    subject.receive([message(1, timestamp="2020-05-03T09:00:00+00:00"), message(2)], clock.now())
    assert not subject.summary_due(clock.advance(100))
