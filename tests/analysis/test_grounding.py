"""A point must share what tells something with the messages it cites, in any language; a refusal does not."""

from __future__ import annotations

from itertools import chain, combinations

import pytest

from context_builder.analysis.analyst import AnalystMessage, SummaryRequest
from context_builder.analysis.grounding import Grounding
from context_builder.analysis.text.analyst import TextAnalyst
from tests.analysis.talk_in_languages import TALKS, Talk

SAID = (
    "We measured 42 samples on Tuesday and decided to repeat the PCR with primer B7.",
    "Let's move the meeting from 10:30 to 11:00, because Bob's train is late again.",
    "Yes, let's.",
    "Primer B7 was contaminated, so take TP53 next time.",
    "Ms Rossi's team was wrong about 42 samples: it was 43.",
)

by_language = pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.language)


def heard(*texts: str, speaker: str = "Alice") -> Grounding:
    return Grounding([AnalystMessage(place, speaker, text) for place, text in enumerate(texts)])


def citations(messages: int) -> list[tuple[int, ...]]:
    """Every choice of messages."""
    return list(chain.from_iterable(combinations(range(messages), count) for count in range(1, messages + 1)))


@by_language
def test_what_retells_its_messages_is_grounded(talk: Talk) -> None:
    grounding = heard(*talk.messages)
    for text, cites in talk.points:
        assert grounding.is_grounded(text, [number - 1 for number in cites]), text


@by_language
def test_a_refusal_is_grounded_in_nothing_whatever_it_cites(talk: Talk) -> None:
    grounding = heard(*talk.messages)
    for text in talk.refusals:
        for cited in citations(len(talk.messages)):
            assert not grounding.is_grounded(text, cited), text


@by_language
def test_a_refusal_that_names_the_topic_is_grounded_in_nothing(talk: Talk) -> None:
    grounding = heard(*talk.messages)
    for text in talk.refusals_of_topic:
        for cited in citations(len(talk.messages)):
            assert not grounding.is_grounded(text, cited), text


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("I will send the signed contract on Friday.", "I will send the contract that is signed on Friday."),
        ("Sorry, I can't come to Oslo for the meeting.", "Unfortunately, Bob cannot come to the Oslo meeting."),
        ("I won't make it to the budget meeting in Oslo.", "Bob cannot come to the budget meeting in Oslo."),
        ("Summarize what the gateway's exceptions were.", "A summary of the exceptions and failures of the gateway."),
    ],
)
def test_a_point_may_say_of_people_what_a_refusal_says_of_its_writer(said: str, text: str) -> None:
    assert heard(said).is_grounded(text, [0])


def test_numbers_alone_ground_nothing() -> None:
    assert not heard("It costs 1000 euros, 24681012 in Iran.").is_grounded("Error 1000: upstream 24681012 gone", [0])


@by_language
def test_a_point_in_another_language_than_its_messages_is_not_grounded(talk: Talk) -> None:
    grounding = heard(*talk.messages)
    for other in TALKS:
        if other is not talk:
            assert not any(grounding.is_grounded(text, range(len(talk.messages))) for text, _ in other.points)


@by_language
async def test_what_plain_text_analysis_says_is_grounded(talk: Talk) -> None:
    messages = [AnalystMessage(place, "Alice", text) for place, text in enumerate(talk.messages * 3)]
    analyst = TextAnalyst()
    points = (await analyst.summarize(SummaryRequest(messages))).points
    await analyst.close()
    assert all(Grounding(messages).is_grounded(point.text, point.cites) for point in points)
    assert points or talk.language in {"Chinese", "Japanese", "Thai"}  # whose sentences it takes for a word or two


@pytest.mark.parametrize(
    ("text", "cited", "grounded"),
    [
        ("The meeting was moved to 11:00 as Bob's train runs late.", [1], True),
        ("Trains being late, meetings move.", [1], True),
        ("The meeting was moved to 11:00 as Bob's train runs late.", [0], False),
        ("42 and B7", [0], True),
        ("41 and B8", [0], False),
        ("It was decided on", [0], False),
        ("yes,  LET'S.", [2], True),
        ("Alice: Yes, let's.", [2], True),
        ("Yes, let's go.", [2], False),
        ("", [2], False),
        ("…", [0, 1, 2], False),
        ("Anything", [], False),
    ],
)
def test_it_takes_words_that_tell_something(text: str, cited: list[int], grounded: bool) -> None:
    assert heard(*SAID).is_grounded(text, cited) is grounded


def test_the_names_of_those_who_spoke_count_for_nothing() -> None:
    text = "Consuela Oyelaran-Fitzgerald stays out of it."
    assert heard("Ms Oyelaran-Fitzgerald is our new physicist.").is_grounded(text, [0])
    assert not heard("Is our new physicist here?", speaker="Consuela Oyelaran-Fitzgerald").is_grounded(text, [0])
    named = heard("Consuela Oyelaran-Fitzgerald is here.", speaker="Consuela Oyelaran-Fitzgerald")
    assert not named.is_grounded(text, [0])


KNOWN = "Alice's team measured 42 samples with primer B7 at 10:30."


@pytest.mark.parametrize(
    ("text", "cited", "may"),
    [
        ("Alice's team measured 42 samples with primer B7 at 10:30 on Tuesday.", [0], True),
        ("Alice's team measured 43, not 42 samples with primer B7 at 10:30.", [4], True),
        ("Alice's team measured 43 samples with primer B7 at 10:30.", [4], True),
        ("Alice's team measured 42 samples with TP53 at 10:30.", [3], True),
        ("Alice's team measured 42 samples with primer B7 at 11:00.", [1], True),
        ("Alice's team measured samples with a primer on Tuesday.", [0], False),
        ("Alice's PCR of 42 is none that anybody tells stories of; primer B7 is private; ask elsewhere.", [0], False),
        ("Alice's team measured 43 samples.", [4], False),
        ("Alice's team measured 99 samples with primer B7 at 10:30.", [1], False),
    ],
)
def test_a_replacement_keeps_what_identifies_or_cites_why_not(text: str, cited: list[int], may: bool) -> None:
    assert heard(*SAID).may_replace(text, KNOWN, cited) is may


@pytest.mark.parametrize(
    "text", ["\ud800", "a" * 100_000, "́" * 1000, "🙂" * 400, "٤٢ ４２ 42", "\u202e\u0000", "ﷺ" * 100]
)
def test_no_text_is_too_odd_to_check(text: str) -> None:
    grounding = heard(text, *SAID, speaker=text)
    assert grounding.is_grounded(text, [0])
    grounding.is_grounded(text, [1, 2])
    grounding.may_replace(text, text, [0, 1])
    grounding.may_replace(KNOWN, text, [0, 1])
