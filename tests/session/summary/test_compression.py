"""Shorter text that still says what it is about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.session.summary.compression import LEVELS, condense, essence

SAID = "I think that we should really sequence TP53 in 48 of the samples, because Okazaki did not see p.R175H."


def test_first_what_carries_no_meaning_goes() -> None:
    assert condense(SAID, 1) == "sequence TP53 48 samples, Okazaki not p.R175H."


def test_then_only_what_identifies_things_and_a_few_words_stay() -> None:
    long = "careful people gradually assembled several remarkable arguments concerning Barnacle_7 and nothing besides"
    assert condense(long, LEVELS).split() == [
        *("careful", "people", "gradually", "assembled", "several", "remarkable", "Barnacle_7")
    ]


def test_a_negation_is_never_lost() -> None:
    assert "not" in condense("the many long preceding words here certainly show that helicase did not bind", LEVELS)


def test_words_keep_their_order() -> None:
    kept = condense(SAID, LEVELS).split()
    positions = [SAID.index(word) for word in kept]
    assert positions == sorted(positions)


def test_a_text_of_nothing_but_function_words_stays() -> None:
    assert condense("it was like that", 1) == "it was like that"


@given(st.text(), st.sampled_from([1, LEVELS]))
def test_condensing_never_adds_words(text: str, level: int) -> None:
    words = text.split()
    assert text.strip() == "" or all(any(kept in word for word in words) for kept in condense(text, level).split())


@given(st.lists(st.from_regex(r"[A-Z]{2,5}[0-9]{1,4}|[0-9]{1,6}|[a-z]+_[a-z]+", fullmatch=True), min_size=1))
def test_identifiers_and_numbers_stay_verbatim(identifiers: list[str]) -> None:
    text = "well, " + " and then there was ".join(identifiers)
    assert [word for word in condense(text, LEVELS).split() if word != "well,"] == identifiers


def test_contractions_of_function_words_go_and_possessives_stay() -> None:
    assert condense("we're sure that’s the helicase's job, it'll unwind", 1) == "helicase's job, unwind"


@pytest.mark.parametrize("negated", ["didn't", "didn’t", "DON'T", "cannot"])
def test_a_contracted_negation_is_one_too(negated: str) -> None:
    text = f"the many long preceding words here certainly suggest helicase {negated} bind anything else afterwards"
    assert negated in condense(text, LEVELS).split()


def test_words_told_before_or_elsewhere_make_way_first() -> None:
    assert essence("helix turns helix quickly", {}, content=3) == "helix turns quickly"
    assert essence("helix turns quickly", {"helix": 2, "turns": 1}, content=2) == "turns quickly"
