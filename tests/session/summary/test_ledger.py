"""The rolling summary as a ledger: what it takes in, in which order, and how it stays within its budget."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.analysis.analyst import DraftPoint, PointKind
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.messages.message import Message
from context_builder.session.summary.ledger import Ledger
from context_builder.session.summary.point import Point
from tests.session.saying import ARRIVAL, advice, at, message, words


def entries(*messages: Message) -> dict[int, BufferedMessage]:
    return {n: BufferedMessage(n, each, ARRIVAL) for n, each in enumerate(messages, start=1)}


def heard(count: int) -> dict[int, BufferedMessage]:
    """Entries whose ids are also their numbers and seconds."""
    return entries(*(message(n) for n in range(1, count + 1)))


def ledger(*drafts: DraftPoint, budget: int = 1000, about: dict[int, BufferedMessage] | None = None) -> Ledger:
    made = Ledger(budget, words)
    made.add(drafts, about if about is not None else heard(9))
    return made


def point(text: str, *cites: int, **more: Any) -> DraftPoint:
    return DraftPoint(text, cites, **more)


def test_each_point_is_a_line_with_its_speakers() -> None:
    about = entries(message(1), message(2, speaker="Bob"), advice())
    made = ledger(
        point("helicase unwinds DNA", 1, 2),
        point("sequence TP53", 1, kind=PointKind.DECISION),
        point("how fast?", 2, kind=PointKind.QUESTION),
        point("look at topoisomerase", 3),
        about=about,
    )
    assert made.render().splitlines() == [
        "Alice, Bob: helicase unwinds DNA",
        "Alice (decision): sequence TP53",
        "Bob asks: how fast?",
        "Consilience (assistant): look at topoisomerase",
    ]


@pytest.mark.parametrize("draft", [point("cites none"), point("cites others", 1, 99), point(" \n ", 1)])
def test_a_point_without_text_or_sources_is_refused(draft: DraftPoint) -> None:
    made = Ledger(1000, words)
    assert [accepted.text for accepted in made.add([draft, point("fine", 1)], heard(2))] == ["fine"]
    assert made.render() == "Alice: fine"


def test_a_point_cites_ids_and_the_numbers_listeners_gave() -> None:
    made = ledger(point("three sources", 3, 1, 2, 1), about=entries(message(7), message(None), advice()))
    assert made.points[0].ids == (3, 1, 2)
    assert made.points[0].messages == (1_759_394_000_123, 7)
    assert made.points[0].first_number == 7


def test_a_point_cites_five_messages_at_most() -> None:
    assert ledger(point("many", *range(1, 9))).points[0].ids == (1, 2, 3, 4, 5)


def test_points_of_late_messages_go_where_the_messages_belong() -> None:
    made = ledger(point("first", 1), point("fifth", 5), point("sixth", 6))
    made.add([point("third", 3)], heard(9))
    assert [p.text for p in made.points] == ["first", "third", "fifth", "sixth"]


def test_points_of_a_recorder_that_restarted_go_last() -> None:
    made = ledger(point("forty-first", 1), about=entries(message(41)))
    made.add([point("new recording", 2)], entries(message(40), message(1, timestamp=at(99))))
    assert [p.text for p in made.points] == ["forty-first", "new recording"]


def test_a_point_may_restate_an_earlier_one_and_keeps_its_sources() -> None:
    made = ledger(point("we may sequence TP53", 1), point("something else", 2))
    made.add(
        [point("we will sequence TP53", 1, replaces=1)], {1: BufferedMessage(5, message(5, speaker="Bob"), ARRIVAL)}
    )
    assert [(p.text, p.ids) for p in made.points] == [("we will sequence TP53", (1, 5)), ("something else", (2,))]
    assert made.points[0].speakers == ("Alice", "Bob")


def test_restating_what_is_not_there_is_a_new_point() -> None:
    made = ledger(point("we will", 1, replaces=77))
    assert [p.text for p in made.points] == ["we will"]


def test_the_tail_is_what_of_the_newest_fits() -> None:
    made = ledger(point("one two three", 1), point("four five", 2), point("six", 3))
    assert [known.text for known in made.tail(3)] == ["four five", "six"]
    assert made.tail(0) == []


def test_what_was_written_down_is_taken_over() -> None:
    made = ledger(point("one", 1), point("two", 2, kind=PointKind.ACTION))
    restored = Ledger(1000, words)
    restored.restore(Point.from_wire(p.wire()) for p in made.points)
    restored.add([point("three", 3)], heard(3))
    assert restored.points[:2] == made.points
    assert restored.points[2].id == 3


def test_over_the_budget_the_oldest_points_are_shortened_first() -> None:
    told = [point(f"and so we really think that gene TP{n} binds", n) for n in range(1, 10)]
    made = ledger(*told, budget=80)
    assert made.points[0].text == "gene TP1 binds"
    assert made.points[-1].text == told[-1].text


def test_shortening_is_enough_before_anything_is_merged() -> None:
    made = ledger(*(point(f"it is really the case that TP{n} binds", n) for n in range(1, 10)), budget=40)
    assert [p.ids for p in made.points] == [(n,) for n in range(1, 10)]


def test_merging_keeps_identifiers_and_the_first_and_last_sources() -> None:
    made = ledger(*(point(f"people measured TP{n} repeatedly", n) for n in range(1, 10)), budget=20)
    assert len(made.points) < 9
    assert "TP9" in made.render()
    assert made.points[0].ids[0] == 1


def test_one_speaker_with_an_endless_name_does_not_crowd_out_the_rest() -> None:
    about = entries(message(1), message(2, speaker="M" * 5000), message(3))
    made = Ledger(120, len)
    made.add([point("TP53 binds", 1), point("spam", 2), point("CRISPR cuts", 3)], about)
    assert [p.text for p in made.points] == ["TP53 binds", "spam", "CRISPR cuts"]


def test_a_single_endless_point_is_cut_with_a_mark() -> None:
    made = ledger(point(" ".join(f"word{n}" for n in range(500)), 1), budget=20)
    assert made.render().endswith(" …")
    assert words(made.render()) <= 20


_texts = st.text(max_size=60) | st.lists(st.sampled_from(["TP53", "we", "binds", "12", "x" * 50])).map(" ".join)
_drafts = st.lists(st.builds(point, _texts, st.integers(1, 9), st.integers(1, 9), replaces=st.integers(1, 20)))
_counts = st.sampled_from(
    [words, len, lambda text: len(text.encode()), lambda text: words(text) + 5 * ("\n" in text.strip())]
)


@given(st.lists(_drafts, max_size=4), st.integers(1, 60), _counts, st.text(min_size=1, max_size=80))
def test_the_budget_is_never_exceeded(readings: list[list[DraftPoint]], budget: int, count: Any, name: str) -> None:
    made = Ledger(budget, count)
    about = entries(*(message(n, speaker=name if n % 2 else "Bob") for n in range(1, 10)))
    for drafts in readings:
        made.add(drafts, about)
        assert count(made.render()) <= budget
        assert all(1 <= len(p.ids) <= 5 for p in made.points)


def test_points_of_messages_without_numbers_may_be_restated() -> None:
    about = entries(message(None), message(None, "no longer"), message(7))
    made = ledger(point("we may", 1), about=about)
    made.add([point("we will", 2, replaces=1)], about)
    made.add([point("we do", 3, replaces=2)], about)
    assert [(p.ids, p.messages, p.first_number) for p in made.points] == [((1, 2, 3), (7,), 7)]


def test_of_many_sources_the_earliest_two_and_the_latest_three_stay() -> None:
    made = ledger(point("first", 1, 2, 3, 4))
    made.add([point("last", 5, 6, 7, 8, replaces=1)], heard(9))
    assert made.points[0].ids == (1, 2, 6, 7, 8)


def test_the_tail_tells_kinds_and_speakers() -> None:
    made = ledger(point("sequence TP53", 1, kind=PointKind.DECISION))
    [known] = made.tail(9)
    assert (known.id, known.kind, known.speakers) == (1, PointKind.DECISION, ("Alice",))


@pytest.mark.parametrize(("second", "kind"), [(PointKind.DECISION, PointKind.DECISION), (PointKind.QUESTION, "claim")])
def test_what_points_of_one_kind_are_merged_into_is_of_that_kind(second: PointKind, kind: str) -> None:
    about = heard(2)
    made = ledger(
        point("people gradually measured several remarkable results with TP1 and TP2", 1, kind=PointKind.DECISION),
        point("others gradually measured several remarkable results with TP3 and TP4", 2, kind=second),
        budget=14,
        about=about,
    )
    [merged] = made.points
    assert (merged.ids, merged.kind) == ((1, 2), kind)


def test_an_empty_ledger_is_taken_over() -> None:
    restored = Ledger(1000, words)
    restored.restore([])
    restored.add([point("one", 1)], heard(1))
    assert restored.points[0].id == 1
