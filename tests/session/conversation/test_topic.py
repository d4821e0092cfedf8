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
from context_builder.session.conversation import checkpoint
from context_builder.session.conversation.domain_tracker import MOST_IN_A_ROW, DomainGate, is_unchanged
from context_builder.session.conversation.published_state import session_state
from context_builder.session.conversation.tasks import DomainTask
from context_builder.session.conversation.topic import MAX_ACTIVE, Topic
from context_builder.testing import ManualClock
from tests.session.saying import BIOLOGY, START, conversation, hear, infer, words

LAW = DomainResult({"Political Science / Law": 0.9}, ("statute",), "stub")
STRAY = DomainResult({"Physics / Astronomy": 0.5}, ("star",), "stub")
NOTHING = DomainResult({}, (), "stub")


def topic(*readings: DomainResult) -> Topic:
    """The topic after readings a second apart."""
    made = Topic()
    for second, reading in enumerate(readings):
        made = made.after(reading.confidence, float(second))
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


# Its changes


def test_the_first_topic_is_no_change() -> None:
    assert topic(BIOLOGY, BIOLOGY).changed_at is None


def test_a_topic_has_changed_for_good_after_two_inferences_as_of_the_first() -> None:
    assert topic(BIOLOGY, BIOLOGY, LAW).changed_at is None
    assert topic(BIOLOGY, BIOLOGY, LAW, LAW).changed_at == 2.0


def test_an_excursion_is_no_change() -> None:
    assert topic(BIOLOGY, LAW, BIOLOGY, BIOLOGY).changed_at is None


def test_taking_up_the_topic_again_after_small_talk_is_no_change() -> None:
    assert topic(BIOLOGY, NOTHING, NOTHING, NOTHING, BIOLOGY, BIOLOGY).changed_at is None


def test_each_topic_that_settles_is_a_change_of_its_own() -> None:
    physics = DomainResult({"Physics / Astronomy": 0.9}, ("star",), "stub")
    assert topic(BIOLOGY, LAW, LAW, physics, physics).changed_at == 3.0


def test_two_excursions_with_the_topic_between_them_are_no_change() -> None:
    assert topic(BIOLOGY, LAW, BIOLOGY, LAW, BIOLOGY).changed_at is None


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
        clock.advance(10)
    again = checkpoint.restore(
        "monday", {"head": checkpoint.write_head(subject)}, 0, SessionConfig(), clock.now(), words
    )
    state = orjson.loads(bytes(session_state(again, 1, clock.now())))
    assert state["current_domains"] == ["Political Science / Law"]
    assert state["topic_changed_at"] == START + 10
    assert again.domain_tracker.topic == subject.domain_tracker.topic


def test_a_checkpoint_from_before_there_were_topics_is_continued(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1, 2, 3, 4, 5)
    infer(subject, clock)
    head = orjson.loads(checkpoint.write_head(subject))
    del head["domains"]["topic"], head["counters"]["topic_changed_at"], head["counters"]["domain_calls_skipped"]
    again = checkpoint.restore("monday", {"head": orjson.dumps(head)}, 0, SessionConfig(), clock.now(), words)
    assert again.domain_tracker.topic.current == {"Biology / Life Sciences": 0.9}
    assert (again.domain_tracker.topic.changed_at, again.domain_tracker.skipped) == (None, 0)


# Model calls spared

CELLS = [AnalystMessage(n, "Ann", "The ribosome of the cell translates mRNA into protein.") for n in range(5)]
COURTS = [
    AnalystMessage(n, "Ann", "The supreme court ruled that the statute violates the constitution.")
    for n in range(5, 10)
]
CHATTER = [AnalystMessage(n, "Ann", "Shall we have lunch first, or what do you think?") for n in range(5)]
BIO, ECOLOGY = "Biology / Life Sciences", "Environmental Science / Ecology"


@pytest.mark.parametrize(
    ("names", "recent", "newest", "unchanged"),
    [
        ([BIO], {BIO: 0.8}, {BIO: 0.3}, True),
        ([BIO], {BIO: 0.8}, {ECOLOGY: 0.4, BIO: 0.3}, True),
        ([BIO], {BIO: 0.8}, {}, True),
        ([BIO], {BIO: 0.8}, {ECOLOGY: 0.4}, False),
        ([BIO], {ECOLOGY: 0.5, BIO: 0.4}, {BIO: 0.8}, False),
        ([BIO, ECOLOGY], {ECOLOGY: 0.5}, {ECOLOGY: 0.8}, True),
        ([BIO], {}, {}, True),
        ([], {}, {}, True),
        ([], {BIO: 0.8}, {}, False),
    ],
)
def test_nothing_has_changed_while_no_other_domain_is_heard(
    names: list[str], recent: Any, newest: Any, unchanged: bool
) -> None:
    assert is_unchanged(names, recent, newest) == unchanged


@pytest.fixture
async def gate() -> AsyncIterator[DomainGate]:
    plain = TextAnalyst()
    yield DomainGate(plain)
    await plain.close()


async def asked(
    gate: DomainGate,
    messages: list[AnalystMessage],
    standing: DomainResult | None,
    *,
    answer: str = BIO,
    in_doubt: bool = False,
) -> bool:
    """Whether the model had to be asked, which then named the domain ``answer``."""
    if await gate.repeated(DomainTask(messages, 5, 5, standing, in_doubt)) is not None:
        return False
    gate.judged(DomainResult({answer: 0.9}, (), "stub"))
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
    again = await gate.repeated(DomainTask(CELLS, 5, 5, paid, in_doubt=False))
    assert again is not None
    assert (again.usage, again.repeated) == (Usage(), True)
    assert (again.confidence, again.keywords) == (paid.confidence, paid.keywords)


async def test_the_newest_messages_by_themselves_may_tell_of_another_topic(gate: DomainGate) -> None:
    talk, newest = [*CELLS * 3, *COURTS], len(COURTS)
    assert await gate.repeated(DomainTask(CELLS * 3, 5, newest, BIOLOGY, in_doubt=False)) is not None
    assert await gate.repeated(DomainTask(talk, 5, newest, BIOLOGY, in_doubt=False)) is None


async def test_agreement_on_the_second_domain_of_a_reading_is_none(gate: DomainGate) -> None:
    assert await asked(gate, COURTS, DomainResult({BIO: 0.9, "Political Science / Law": 0.8}, (), "stub"))


async def test_agreement_ends_a_doubt_and_silence_about_everything_does_not(gate: DomainGate) -> None:
    assert not await asked(gate, CELLS, BIOLOGY, in_doubt=True)
    assert not await asked(gate, CHATTER, BIOLOGY)
    assert await asked(gate, CHATTER, BIOLOGY, in_doubt=True)


async def test_a_model_may_call_a_topic_by_another_name_once_it_has_done_so_twice(gate: DomainGate) -> None:
    standing = DomainResult({ECOLOGY: 0.9}, (), "stub")
    calls = [await asked(gate, CELLS, standing, answer=ECOLOGY) for _ in range(4)]
    assert calls == [True, True, False, False]
    assert await asked(gate, COURTS, standing, answer=ECOLOGY)


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


def test_a_reading_is_in_doubt_until_its_domain_leads_twice(clock: ManualClock) -> None:
    subject = conversation(clock)
    standing = []
    for number, reading in enumerate([BIOLOGY, STRAY, LAW, LAW, LAW]):
        hear(subject, clock, *range(5 * number + 1, 5 * number + 6))
        work = subject.next_domain_task(clock.now())
        assert work is not None
        standing.append((work.standing, work.in_doubt))
        subject.finish(work, reading, clock.now())
    assert standing == [(None, False), (BIOLOGY, False), (STRAY, True), (LAW, True), (LAW, False)]


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
