"""A decision that replaces another is told by its words; a miss is better than a wrong answer."""

from __future__ import annotations

import pytest

from context_builder.analysis.analyst import PointKind
from context_builder.session.summary.point import Point, PointQuote, replaced_by


def point(number: int, text: str, kind: PointKind = PointKind.DECISION) -> Point:
    return Point(number, text, kind, ("Ann",), (PointQuote(number, number, text, "Ann"),), float(number))


BY_HAND = point(1, "Hydrophone clips are labelled by hand.")
TUESDAY = point(2, "The review is on Tuesday.")


@pytest.mark.parametrize(
    "text",
    [
        "Hydrophone clips are labelled by a model instead.",
        "The clips are no longer labelled by hand.",
        "We switch from labelling clips by hand to a model for hydrophone clips.",
        "A model labels the hydrophone clips rather than people.",
    ],
)
def test_what_says_that_it_replaces_a_decision_on_the_same_does(text: str) -> None:
    assert replaced_by(point(5, text), [BY_HAND, TUESDAY]) == BY_HAND


@pytest.mark.parametrize(
    "text",
    [
        "Hydrophone clips are labelled twice.",
        "The budget is cut instead.",
        "Hydrophones are bought instead.",
        "",
    ],
)
def test_what_does_not_say_so_or_is_about_something_else_does_not(text: str) -> None:
    assert replaced_by(point(5, text), [BY_HAND, TUESDAY]) is None


def test_only_decisions_replace_decisions_that_came_before() -> None:
    later = point(5, "Hydrophone clips are labelled by a model instead.")
    assert replaced_by(point(5, later.text, PointKind.CLAIM), [BY_HAND]) is None
    assert replaced_by(later, [point(1, BY_HAND.text, PointKind.CLAIM)]) is None
    assert replaced_by(later, [point(6, BY_HAND.text), later]) is None


def test_of_several_the_latest_on_the_same_is_replaced() -> None:
    again = point(3, BY_HAND.text)
    assert replaced_by(point(5, "Hydrophone clips are labelled by a model instead."), [BY_HAND, again]) == again
