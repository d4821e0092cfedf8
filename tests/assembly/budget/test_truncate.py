"""Where a text that is too long is cut: between words if there is a gap close by, else at the very length."""

from __future__ import annotations

import pytest

from context_builder.assembly.budget import SHORTEST, clipped, shortened


@pytest.mark.parametrize(
    ("length", "kept"),
    [(9, "alpha…"), (10, "alpha…"), (11, "alpha betas…"), (12, "alpha betas…"), (17, "alpha betas gamma…")],
)
def test_a_text_is_cut_after_the_last_whole_word(length, kept):
    assert shortened("alpha betas gamma", length) == kept


def test_a_gap_of_several_spaces_is_not_kept_before_the_mark_but_an_indentation_is():
    assert shortened("  indented   text", 12) == "  indented…"


def test_a_word_that_is_longer_than_what_may_be_given_up_is_cut_within():
    assert shortened("word " + "x" * 100, 60) == "word " + "x" * 55 + "…"
    assert shortened("x" * 100, 60) == "x" * 60 + "…"


def test_a_text_as_short_as_the_shortest_beginning_is_not_clipped():
    assert clipped("x" * SHORTEST, lambda text: True) is None
    assert clipped("x" * (SHORTEST + 1), lambda text: True) is not None
