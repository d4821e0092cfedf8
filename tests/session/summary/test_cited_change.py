"""A point whose message was corrected is kept, rewritten where it can be, or retracted."""

from __future__ import annotations

import pytest

from context_builder.analysis.analyst import PointKind
from context_builder.session.summary.citation import CitedMessage
from context_builder.session.summary.cited_change import (
    CitedChange,
    long_words,
    revised,
    tells,
    with_name,
    words_that_tell,
)
from context_builder.session.summary.point import Point, PointQuote

SAID = "The pump costs fifteen thousand euros."


def cited(text: str, speaker: str = "Ida", *, clipped: bool = False) -> CitedMessage:
    return CitedMessage(1, 1, speaker, "2026-03-02T10:00:00+00:00", text, consilience=False, clipped=clipped)


def point(text: str, quote: str, *others: PointQuote) -> Point:
    return Point(1, text, PointKind.CLAIM, ("Ida",), (PointQuote(1, 1, quote, "Ida"), *others), 0.0)


def after(one: Point, new: CitedMessage, said: str = SAID) -> tuple[str, str] | None:
    """The sentence and its first quote."""
    old = cited(said)
    change = CitedChange(old, new, new.text != old.text or new.clipped)
    found = revised(one, change, {1: new})
    return None if found is None else (found.text, found.evidence[0].text)


@pytest.mark.parametrize(
    ("text", "quote", "expected"),
    [
        (SAID, SAID, ("The pump costs fifty thousand euros.", "The pump costs fifty thousand euros.")),
        ("Ida says it costs fifteen thousand euros.", "costs fifteen thousand", "costs fifty thousand"),
        ("Ida wants a pump.", "The pump", "The pump"),
        ("The pump costs 15,000 euros.", "fifteen thousand euros", None),
    ],
)
def test_words_that_changed_are_replaced_where_they_stand(
    text: str, quote: str, expected: tuple[str, str] | str | None
) -> None:
    found = after(point(text, quote), cited("The pump costs fifty thousand euros."))
    if isinstance(expected, str):
        assert found == (text.replace("fifteen", "fifty"), expected)
    else:
        assert found == expected


def test_what_means_the_contrary_now_is_retracted() -> None:
    assert (
        after(point("They buy the pump.", "We buy the pump"), cited("We do not buy the pump"), "We buy the pump")
        is None
    )
    gone = after(point("They do not buy it.", "do not buy"), cited("We buy it"), "We do not buy it")
    assert gone is None or "not" not in gone[0]


def test_a_quote_of_words_that_are_gone_is_gone() -> None:
    assert after(point("Kelp sings.", "Kelp sings at night"), cited("Let us go."), "Kelp sings at night") is None
    assert after(point("The pump is dear.", "fifteen thousand"), cited("The pump costs euros.")) is None


def test_of_a_long_message_no_quote_beyond_what_is_kept_is_trusted() -> None:
    long = point("The pump is blue.", "and it is blue")
    assert after(long, cited(SAID, clipped=True)) is None


def test_another_speaker_takes_the_point_with_them_unless_the_old_one_is_quoted_too() -> None:
    change = CitedChange(cited(SAID), cited(SAID, "Bo"), words_differ=False)
    found = revised(point("Ida says the pump is dear.", "fifteen thousand"), change, {})
    assert found is not None
    assert (found.text, found.by, found.evidence[0].speaker) == ("Bo says the pump is dear.", ("Bo",), "Bo")
    both = point("Ida says the pump is dear.", "fifteen thousand", PointQuote(2, 2, "it is dear", "Ida"))
    found = revised(both, change, {})
    assert found is not None
    assert (found.text, found.by, found.evidence[0].speaker) == ("Ida says the pump is dear.", ("Ida",), "Bo")


def test_a_name_is_replaced_as_a_whole() -> None:
    assert with_name("Bo and Bob ask Bo's Bo.", "Bo", "Ann") == "Ann and Bob ask Ann's Ann."
    assert with_name("A. (x) B", "(x)", r"\1") == r"A. \1 B"


def test_a_point_that_names_what_a_struck_message_alone_named_tells_it() -> None:
    struck = words_that_tell("Ann pays 900 euros to Zanzibar.")
    assert tells(point("Ida agrees to pay 900 euros.", "I agree"), struck, {1: cited("I agree to pay euros.")})
    assert tells(point("Ida agrees with Zanzibar.", "I agree"), struck, {})
    assert not tells(point("Ida agrees to pay 900 euros.", "I agree"), struck, {1: cited("I agree to pay 900.")})
    assert not tells(point("Ida agrees.", "I agree"), struck, {})


@pytest.mark.parametrize(("struck", "expected"), [(3, True), (30, False)])
def test_a_point_that_rests_on_an_answer_tells_what_was_asked(struck: int, expected: bool) -> None:
    beside = {struck: long_words("Shall we dismiss the marketing manager?")}
    assert tells(point("Ida agrees to dismiss the marketing manager.", "I agree"), frozenset(), {}, beside) is expected
    assert not tells(point("Ida agrees with the manager that we shall.", "I agree"), frozenset(), {}, beside)
    assert not tells(
        point("We dismiss the manager.", "I agree"), frozenset(), {1: cited("We dismiss the manager.")}, beside
    )
