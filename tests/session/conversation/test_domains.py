"""Domains as a signal: smoothed, current after one clear inference, deaf to weak strays; and model calls spared."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.analysis.analyst import AnalystMessage, DomainResult
from context_builder.analysis.text import TextAnalyst
from context_builder.costs import Usage
from context_builder.domains import DOMAINS
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.domains import HELD, LASTING, MAX_ACTIVE, MOST_IN_A_ROW, DomainGate, Topic
from context_builder.session.conversation.state import restore, take_session_state, write_head
from context_builder.session.conversation.tasks import DomainTask
from context_builder.testing import ManualClock
from tests.session.saying import BIOLOGY, START, conversation, hear, infer, message, summarize, words

LAW = DomainResult({"Political Science / Law": 0.9}, ("statute",), "stub")
STRAY = DomainResult({"Physics / Astronomy": 0.5}, ("star",), "stub")
NOTHING = DomainResult({}, (), "stub")


def topic(*readings: DomainResult, pace: float = HELD) -> Topic:
    """The topic after readings ``pace`` seconds apart, so far by default that nothing is held any more."""
    made = Topic()
    for place, reading in enumerate(readings):
        made = made.after(reading.confidence, place * pace, reading.keywords)
    return made


# The signal


def test_the_first_inference_counts_in_full() -> None:
    assert topic(STRAY).current == {"Physics / Astronomy": 0.5}


def test_a_clear_new_topic_leads_at_once() -> None:
    assert list(topic(BIOLOGY, BIOLOGY, LAW).current) == ["Political Science / Law"]


def test_a_weak_stray_is_held_back_until_it_is_repeated() -> None:
    assert list(topic(BIOLOGY, STRAY).current) == ["Biology / Life Sciences"]
    assert next(iter(topic(BIOLOGY, STRAY, STRAY).current)) == "Physics / Astronomy"


def test_a_domain_fades_when_it_is_no_longer_heard() -> None:
    assert list(topic(BIOLOGY, NOTHING).current) == ["Biology / Life Sciences"]
    assert topic(BIOLOGY, NOTHING, NOTHING, NOTHING).current == {}


def test_after_silence_about_everything_a_new_topic_shows_at_once() -> None:
    assert list(topic(BIOLOGY, NOTHING, NOTHING, NOTHING, STRAY).current) == ["Physics / Astronomy"]


def test_a_domain_stays_through_side_talk_while_another_leads() -> None:
    soon = topic(BIOLOGY, LAW, LAW, pace=HELD / 3)
    assert list(soon.current) == ["Political Science / Law", "Biology / Life Sciences"]
    assert list(soon.after(LAW.confidence, HELD).current) == ["Political Science / Law"]


def test_what_is_found_again_is_held_from_then_on() -> None:
    made = topic(BIOLOGY, BIOLOGY, NOTHING, NOTHING, NOTHING, pace=HELD / 4)
    assert list(made.current) == ["Biology / Life Sciences"]
    assert made.after({}, 5 * HELD / 4).current == {}


# Its changes


def test_the_first_topic_is_no_change() -> None:
    assert topic(BIOLOGY, BIOLOGY).changed_at is None


def test_the_subject_has_changed_when_another_one_lasts_as_of_its_first_inference() -> None:
    assert topic(BIOLOGY, BIOLOGY, LAW).changed_at is None
    assert topic(BIOLOGY, BIOLOGY, LAW, LAW, pace=LASTING).changed_at == 2 * LASTING
    assert topic(BIOLOGY, BIOLOGY, LAW, LAW, pace=LASTING / 2).changed_at is None


def test_an_excursion_is_no_change() -> None:
    assert topic(BIOLOGY, LAW, BIOLOGY, BIOLOGY).changed_at is None


def test_taking_up_the_topic_again_after_small_talk_is_no_change() -> None:
    assert topic(BIOLOGY, NOTHING, NOTHING, NOTHING, BIOLOGY, BIOLOGY).changed_at is None


def test_each_subject_that_lasts_is_a_change_of_its_own() -> None:
    physics = DomainResult({"Physics / Astronomy": 0.9}, ("star",), "stub")
    assert topic(BIOLOGY, LAW, LAW, physics, physics).changed_at == 3 * HELD
    assert topic(BIOLOGY, LAW, LAW, BIOLOGY, BIOLOGY).changed_at == 3 * HELD


def test_two_excursions_with_the_topic_between_them_are_no_change() -> None:
    assert topic(BIOLOGY, LAW, BIOLOGY, LAW, BIOLOGY).changed_at is None


def test_which_of_the_domains_of_a_subject_leads_is_no_change() -> None:
    consent = DomainResult({"Philosophy / Ethics": 0.9, "Political Science / Law": 0.7}, ("consent form",), "stub")
    statute = DomainResult({"Political Science / Law": 0.9, "Philosophy / Ethics": 0.5}, ("statute",), "stub")
    assert topic(consent, statute, statute, consent, statute, statute).changed_at is None


def test_a_subject_that_goes_by_another_domain_but_the_same_terms_is_no_change() -> None:
    ecology = DomainResult({"Environmental Science / Ecology": 0.9}, ("DNAs",), "stub")
    assert topic(BIOLOGY, ecology, ecology, ecology).changed_at is None


def test_a_domain_that_was_touched_on_the_way_is_a_new_subject_all_the_same() -> None:
    both = DomainResult({"Biology / Life Sciences": 0.7, "Political Science / Law": 0.7}, ("DNA",), "stub")
    assert topic(BIOLOGY, BIOLOGY, both, LAW, LAW).changed_at == 3 * HELD


def test_what_leads_only_faintly_is_no_subject() -> None:
    faint = DomainResult({"Physics / Astronomy": 0.35}, ("star",), "stub")
    assert topic(BIOLOGY, NOTHING, NOTHING, NOTHING, faint, faint, faint).changed_at is None


def test_an_active_domain_stays_until_it_has_faded_further_than_it_takes_to_enter() -> None:
    faint = DomainResult({"Biology / Life Sciences": 0.25}, (), "stub")
    assert list(topic(BIOLOGY, faint, faint, faint).current) == ["Biology / Life Sciences"]
    assert list(topic(LAW, faint).current) == ["Political Science / Law"]


_readings = st.dictionaries(st.sampled_from(DOMAINS), st.floats(0, 1, allow_nan=False), max_size=5)


@given(st.lists(_readings, max_size=8))
def test_whatever_is_inferred_the_signal_is_ordered_bounded_and_survives_storage(readings: list[Any]) -> None:
    made = Topic()
    for second, confidence in enumerate(readings):
        made = made.after(confidence, float(second))
        values = list(made.current.values())
        assert len(values) <= MAX_ACTIVE
        assert all(0 <= later <= earlier <= 1 for earlier, later in pairwise(values))
        assert Topic.from_wire(orjson.loads(orjson.dumps(made.wire()))) == made


# Published and kept


def test_the_change_is_published_and_survives_a_restart(clock: ManualClock) -> None:
    subject = conversation(clock)
    for number, reading in enumerate([BIOLOGY, LAW, LAW]):
        hear(subject, clock, *range(5 * number + 1, 5 * number + 6))
        infer(subject, clock, reading)
        clock.advance(LASTING)
    again = restore("monday", {"head": write_head(subject)}, 0, SessionConfig(), clock.now(), words)
    state = orjson.loads(bytes(take_session_state(again, 1, clock.now())))
    assert state["current_domains"] == ["Political Science / Law", "Biology / Life Sciences"]
    assert state["topic_changed_at"] == START + LASTING
    assert again.domain_tracker.topic == subject.domain_tracker.topic


# Model calls spared

CELLS = [AnalystMessage(n, "Ann", "The ribosome of the cell translates mRNA into protein.") for n in range(5)]
COURTS = [
    AnalystMessage(n, "Ann", "The supreme court ruled that the statute violates the constitution.")
    for n in range(5, 10)
]
CHATTER = [AnalystMessage(n, "Ann", "Shall we have lunch first, or what do you think?") for n in range(5)]
ZELLEN = [AnalystMessage(n, "Ann", "Das Ribosom der Zelle übersetzt die mRNA in Protein.") for n in range(5)]
BIO, ECOLOGY = "Biology / Life Sciences", "Environmental Science / Ecology"


@pytest.fixture
async def gate() -> AsyncIterator[DomainGate]:
    plain = TextAnalyst()
    yield DomainGate(plain)
    await plain.close()


async def asked(
    gate: DomainGate,
    messages: list[AnalystMessage],
    standing: DomainResult | None,
) -> bool:
    """Whether the model had to be asked."""
    if await gate.repeated(DomainTask(messages, 5, 5, standing)) is not None:
        return False
    gate.model_answered()
    return True


async def test_the_models_reading_stands_while_plain_analysis_agrees_but_not_for_ever(gate: DomainGate) -> None:
    calls = [await asked(gate, CELLS, BIOLOGY) for _ in range(MOST_IN_A_ROW + 2)]
    assert calls == [*MOST_IN_A_ROW * [False], True, False]


async def test_without_a_reading_or_with_another_topic_the_model_is_asked(gate: DomainGate) -> None:
    assert await asked(gate, CELLS, None)
    assert await asked(gate, COURTS, BIOLOGY)
    assert await asked(gate, CELLS + CELLS + COURTS, BIOLOGY)
    assert not await asked(gate, COURTS, LAW)


async def test_a_reading_that_is_repeated_costs_nothing_and_says_that_it_is_repeated(gate: DomainGate) -> None:
    paid = DomainResult({BIO: 0.9}, ("DNA",), "stub", usage=Usage("gpt", calls=1, prompt_tokens=90))
    again = await gate.repeated(DomainTask(CELLS, 5, 5, paid))
    assert again is not None
    assert (again.usage, again.repeated) == (Usage(), True)
    assert (again.confidence, again.keywords) == (paid.confidence, paid.keywords)


async def test_the_newest_messages_by_themselves_may_tell_of_another_topic(gate: DomainGate) -> None:
    talk, newest = [*CELLS * 3, *COURTS], len(COURTS)
    assert await gate.repeated(DomainTask(CELLS * 3, 5, newest, BIOLOGY)) is not None
    assert await gate.repeated(DomainTask(talk, 5, newest, BIOLOGY)) is None


async def test_agreement_on_the_second_domain_of_a_reading_is_none(gate: DomainGate) -> None:
    assert await asked(gate, COURTS, DomainResult({BIO: 0.9, "Political Science / Law": 0.8}, (), "stub"))


async def test_hearing_no_domain_is_no_agreement(gate: DomainGate) -> None:
    assert await asked(gate, CHATTER, BIOLOGY)
    assert await gate.repeated(DomainTask([*CELLS, *CHATTER], 5, len(CHATTER), BIOLOGY)) is None


async def test_in_a_language_that_the_vocabularies_do_not_know_the_model_is_always_asked(gate: DomainGate) -> None:
    assert await asked(gate, ZELLEN, BIOLOGY)
    assert await asked(gate, [*CELLS, *ZELLEN], BIOLOGY)


async def test_a_domain_by_another_name_is_none(gate: DomainGate) -> None:
    standing = DomainResult({ECOLOGY: 0.9}, (), "stub")
    assert [await asked(gate, CELLS, standing) for _ in range(4)] == [True] * 4


async def test_what_plain_analysis_answered_itself_is_never_repeated(gate: DomainGate) -> None:
    standing = DomainResult({BIO: 0.9}, (), "text")
    assert [await asked(gate, CELLS, standing) for _ in range(3)] == [True] * 3


def test_a_repeated_reading_tags_counts_and_leaves_the_label(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1, 2, 3, 4, 5)
    infer(subject, clock)
    hear(subject, clock, 6, 7, 8, 9, 10)
    infer(subject, clock, DomainResult(BIOLOGY.confidence, BIOLOGY.keywords, "stub", repeated=True))
    assert (subject.domain_tracker.skipped, subject.domain_tracker.new, subject.analysts["domains"]) == (1, 0, "stub")
    assert all(entry.domains == ["Biology / Life Sciences"] for entry in subject.buffer.ordered())


# The messages that domains are inferred from


def test_a_summary_takes_no_message_from_an_inference(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, *range(1, 21))
    clock.advance(SessionConfig().buffer_window)
    summarize(subject, clock)
    hear(subject, clock, 21)
    work = subject.next_domain_task(clock.now())
    assert work is not None
    assert [said.number for said in work.messages] == list(range(12, 22))


def test_after_a_restart_the_last_messages_are_still_there_in_little_space(clock: ManualClock) -> None:
    subject = conversation(clock)
    subject.receive([message(number, "word " * 50_000) for number in range(1, 13)], clock.now())
    clock.advance(SessionConfig().buffer_window)
    summarize(subject, clock)
    while subject.buffer.entries:
        summarize(subject, clock)
    fields = {"head": write_head(subject), **subject.take_changes().encoded_fields()}
    assert len(fields["departed"]) < 12_000
    again = restore("monday", fields, 0, SessionConfig(), clock.now(), words)
    hear(again, clock, 13)
    work = again.next_domain_task(clock.now(), at_once=True)
    assert work is not None
    assert [said.number for said in work.messages] == list(range(4, 14))


# Terms that recur


async def test_a_keyword_of_the_session_is_preferred_in_later_messages(clock: ManualClock) -> None:
    text = "The plasmid, the vector, the enzyme, the buffer, the primer and the ligase are ready."
    subject = conversation(clock)
    analyst = TextAnalyst()
    for number in range(1, 5):
        hear(subject, clock, number)
        work = subject.next_keyword_task(clock.now())
        assert work is not None
        reading = await analyst.extract_keywords([AnalystMessage(number, "Ann", "Is the ligase here?")])
        subject.finish(work, reading, clock.now())
    hear(subject, clock, 5)
    work = subject.next_keyword_task(clock.now())
    assert work is not None
    said = AnalystMessage(5, "Ann", text, recurring=work.messages[0].recurring)
    assert (await analyst.extract_keywords([AnalystMessage(5, "Ann", text)])).keywords[0][0] == "plasmid"
    assert (await analyst.extract_keywords([said])).keywords[0][0] == "ligase"
    await analyst.close()
