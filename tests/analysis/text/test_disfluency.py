"""Disfluencies go; what could mean something stays."""

from __future__ import annotations

import pytest

from context_builder.analysis.text.sentences import capitalized, fluent, sentences, whole_sentences, without_opening


@pytest.mark.parametrize(
    ("spoken", "left"),
    [
        ("We have, uh, three models.", "We have, three models."),
        ("The team, you know, agrees.", "The team, agrees."),
        ("It is kind of slow.", "It is slow."),
        ("I th- I think the the first one.", "I think the first one."),
        ("Mm-hmm. Uh-huh.", ""),
        ("I mean, we could try.", "we could try."),
        ("So um yesterday I er went home.", "So yesterday I went home."),
        ("Und, äh, was ist mit dem Zelt?", "Und, was ist mit dem Zelt?"),
    ],
)
def test_fillers_false_starts_and_repetitions_go(spoken: str, left: str) -> None:
    assert fluent(spoken) == left


@pytest.mark.parametrize(
    "meant",
    [
        "What kind of model is it?",
        "You know what he said.",
        "Do you know Ann?",
        "The HMM and the ERM are trained.",
        "Dial five five five one.",
        "We use .NET and -5 degrees.",
        "pre- and post-test scores",
        "Let's see Barry's code.",
        "Wenn er es hinten will, zahlt er alles.",
        "Wir treffen uns um zehn.",
        "Ele comprou um carro.",
    ],
)
def test_what_could_mean_something_stays(meant: str) -> None:
    assert fluent(meant) == meant


def test_words_that_only_take_the_turn_are_left_out() -> None:
    assert without_opening("Yeah, so, well, we start.") == "We start."
    assert without_opening("mRNA is fragile.") == "mRNA is fragile."


def test_sentences_end_where_they_end() -> None:
    text = "Dr. Lee measured 3.5 volts. Is it e.g. noise?\nNo! Fine."
    assert list(sentences(text)) == ["Dr. Lee measured 3.5 volts.", "Is it e.g. noise?", "No!", "Fine."]


def test_a_day_of_the_month_ends_no_german_sentence() -> None:
    assert list(sentences("Am 12. oder am 19. Juli? Am 19. Juli.")) == ["Am 12. oder am 19. Juli?", "Am 19. Juli."]


def test_a_long_sentence_is_parted_only_where_another_sentence_might_begin() -> None:
    clause = "the sample of the second trial is warmer than all the samples that we measured in the week before it"
    text = f"{clause}, and the last one is colder, because {clause}, and we lost the protocol"
    assert list(sentences(text)) == [
        capitalized(f"{clause}, and the last one is colder, because {clause}"),
        "We lost the protocol",
    ]
    whole = f"If {clause}, and we lost the protocol, because {clause}, then it is over"
    assert list(sentences(whole)) == [whole]


def test_a_speaker_who_begins_anew_leaves_a_fragment_behind() -> None:
    said = list(whole_sentences("I think the Were you done with the transcription?"))
    assert said == ["I think the —", "Were you done with the transcription?"]


def test_a_letter_before_a_term_is_part_of_it() -> None:
    assert list(whole_sentences("W-we put the t-test in the al-also new supplement.")) == [
        "we put the t-test in the also new supplement."
    ]


def test_a_unit_is_no_hesitation() -> None:
    assert fluent("The resistor has 50 Ohm.") == "The resistor has 50 Ohm."
