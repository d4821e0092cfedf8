"""The rolling summary as a ledger: what it takes in, in which order, and how it stays within its budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.analysis.analyst import (
    CompactedPoint,
    CompactionResult,
    DraftPoint,
    PointKind,
    Quote,
)
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.messages.message import Message
from context_builder.session.summary.ledger import LEFT_ALONE, MOST_EVIDENCE, Ledger
from context_builder.session.summary.point import Point
from tests.session.saying import ARRIVAL, advice, at, message, quoting, words

DECISION, ACTION, QUESTION = PointKind.DECISION, PointKind.ACTION, PointKind.QUESTION
PROPOSAL, DISAGREEMENT, CLAIM = PointKind.PROPOSAL, PointKind.DISAGREEMENT, PointKind.CLAIM


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
    return DraftPoint(text, quoting(*cites), **more)


def texts(made: Ledger) -> list[str]:
    return [p.text for p in made.points]


def shown(made: Ledger) -> list[str]:
    return [p.text for p in made.shown]


def test_the_points_stand_under_the_headings_of_their_kinds() -> None:
    about = entries(message(1), message(2, speaker="Bob"), advice())
    made = ledger(
        point("Helicase unwinds DNA.", 1, 2),
        point("How fast is it?", 2, kind=QUESTION),
        point("TP53 will be sequenced.", 1, kind=DECISION),
        point("Bob will order primers.", 2, kind=ACTION),
        point("Alice doubts the yield; Bob does not.", 1, 2, kind=DISAGREEMENT),
        point("Bob proposes a second run.", 2, kind=PROPOSAL),
        point("Consilience suggests topoisomerase.", 3),
        about=about,
    )
    assert made.render().splitlines() == [
        "Decided:",
        "- TP53 will be sequenced.",
        "To do:",
        "- Bob will order primers.",
        "Open:",
        "- How fast is it?",
        "Disputed:",
        "- Alice doubts the yield; Bob does not.",
        "Proposed:",
        "- Bob proposes a second run.",
        "Said:",
        "- Helicase unwinds DNA.",
        "- Consilience suggests topoisomerase.",
    ]


def test_a_sentence_that_stands_as_it_was_said_has_its_speakers_name() -> None:
    said = DraftPoint("I'll order it tomorrow.", (Quote(2, "Fine, I'll order it tomorrow"),), ACTION)
    named = DraftPoint("Bob here, all is well.", (Quote(2, "Bob here, all is well."),))
    made = ledger(said, named, about=entries(message(1), message(2, speaker="Bob")))
    assert made.render() == "To do:\n- Bob: I'll order it tomorrow (2023-11-15).\nSaid:\n- Bob here, all is well."


def test_a_doubt_that_could_not_be_cleared_up_is_said() -> None:
    assert ledger(point("B7 is ordered.", 1, unconfirmed=True)).render() == "Said:\n- B7 is ordered. (unconfirmed)"


def test_a_line_break_in_a_point_makes_no_heading() -> None:
    assert ledger(point("nothing\nDecided:\n- all", 1)).render() == "Said:\n- nothing Decided: - all"


@pytest.mark.parametrize("draft", [point("quotes none"), point("quotes others", 1, 99), point(" \n ", 1)])
def test_a_point_without_text_or_quotes_is_refused(draft: DraftPoint) -> None:
    made = Ledger(1000, words)
    assert [accepted.text for accepted in made.add([draft, point("fine", 1)], heard(2)).written] == ["fine"]
    assert made.render() == "Said:\n- fine"


def test_a_point_knows_its_quotes_by_ids_and_by_the_numbers_listeners_gave() -> None:
    made = ledger(point("three sources", 3, 1, 2, 1), about=entries(message(7), message(None), advice()))
    [made_point] = made.points
    assert (made_point.ids, made_point.messages, made_point.first_number) == ((3, 1, 2), (1_759_394_000_123, 7), 7)
    assert made_point.wire()["evidence"][1] == {"message": 7, "id": 1, "quote": "so it was said", "speaker": "Alice"}


def test_a_point_is_by_those_who_hold_it_or_else_by_all_who_are_quoted() -> None:
    about = entries(message(1), message(2, speaker="Bob"))
    made = ledger(point("one", 1, 2, by=("Bob",)), point("two", 1, 2), about=about)
    assert [p.by for p in made.points] == [("Bob",), ("Alice", "Bob")]


def test_points_of_one_message_keep_their_order() -> None:
    made = ledger(point("first", 4), point("second", 4), point("third", 4))
    assert texts(made) == ["first", "second", "third"]


def test_points_of_late_messages_go_where_the_messages_belong() -> None:
    made = ledger(point("first", 1), point("fifth", 5), point("sixth", 6))
    made.add([point("third", 3)], heard(9))
    assert texts(made) == ["first", "third", "fifth", "sixth"]


def test_points_of_a_recorder_that_restarted_go_last() -> None:
    made = ledger(point("forty-first", 1), about=entries(message(41)))
    made.add([point("new recording", 2)], entries(message(40), message(1, timestamp=at(99))))
    assert texts(made) == ["forty-first", "new recording"]


def test_an_answer_takes_the_place_of_its_question_and_keeps_its_quotes() -> None:
    made = ledger(point("Which primer?", 1, kind=QUESTION), point("something else", 2))
    update = made.add(
        [point("Primer B7 is used.", 5, kind=DECISION, replaces=(1,))],
        {5: BufferedMessage(5, message(5, speaker="Bob"), ARRIVAL)},
    )
    assert [(p.text, p.ids) for p in made.points] == [("something else", (2,)), ("Primer B7 is used.", (1, 5))]
    assert [p.text for p in update.replaced] == ["Which primer?"]
    assert made.points[1].by == ("Bob",)


def test_replacing_what_is_not_there_is_a_new_point() -> None:
    assert texts(ledger(point("we will", 1, replaces=(77,)))) == ["we will"]


def test_an_analyst_is_shown_all_points_that_fit_and_of_more_what_binds_first() -> None:
    made = ledger(point("one two three", 1, kind=DECISION), point("four five", 2), point("six", 3))
    assert [known.text for known in made.known(100)] == ["one two three", "four five", "six"]
    assert [known.text for known in made.known(6)] == ["one two three", "six"]
    assert made.known(0) == []


def test_an_analyst_is_shown_kind_speakers_and_quotes() -> None:
    [known] = ledger(point("sequence TP53", 1, kind=DECISION)).known(9)
    assert (known.id, known.kind, known.by, known.evidence) == (
        1,
        DECISION,
        ("Alice",),
        (Quote(1, "so it was said", "Alice"),),
    )


def test_what_was_written_down_is_taken_over() -> None:
    made = ledger(point("one", 1), point("two", 2, kind=ACTION), point("three", 3, replaces=(1,)))
    restored = Ledger(1000, words)
    restored.restore([Point.from_wire(p.wire()) for p in made.points], made.replaced, made.next_id)
    assert (restored.points, restored.replaced) == (made.points, made.replaced)
    restored.add([point("four", 3)], heard(3))
    assert restored.points[-1].id == 4


# within the budget


def test_over_the_budget_whole_points_leave_claims_first_and_the_oldest_of_them() -> None:
    made = ledger(
        point("a claim of old", 1),
        point("a decision of old", 2, kind=DECISION),
        point("a proposal of old", 3, kind=PROPOSAL),
        point("a claim of late", 4),
        budget=14,
    )
    assert shown(made) == ["a decision of old", "a proposal of old"]
    assert texts(made) == ["a decision of old", "a proposal of old", "a claim of late"], "one is hidden, for a while"


def test_what_is_hidden_is_shown_again_when_there_is_room() -> None:
    made = ledger(point("a claim of old", 1), point("a question of old", 2, kind=QUESTION), budget=9)
    assert shown(made) == ["a question of old"]
    assert [known.text for known in made.known(100)] == ["a claim of old", "a question of old"], "it may be replaced"
    made.add([point("so", 3, replaces=(2,))], heard(9))
    assert shown(made) == ["a claim of old", "so"]


def test_of_what_binds_the_oldest_leaves_last_of_all() -> None:
    kinds = (QUESTION, DISAGREEMENT, PROPOSAL, ACTION, CLAIM, DECISION)
    told = [point(f"kind number {n}", n, kind=kind) for n, kind in enumerate(kinds, start=1)]
    left = [shown(ledger(*told, budget=budget)) for budget in range(40, 0, -1)]
    gone = list(
        dict.fromkeys(
            text for one in left for text in ("kind number 5", "kind number 3", "kind number 2") if text not in one
        )
    )
    assert gone == ["kind number 5", "kind number 3", "kind number 2"]
    assert left[-1] == []


_texts = st.text(max_size=60) | st.lists(st.sampled_from(["TP53", "we", "binds", "12", "x" * 50])).map(" ".join)
_drafts = st.lists(
    st.builds(
        point,
        _texts,
        st.integers(1, 9),
        st.integers(1, 9),
        replaces=st.tuples(st.integers(1, 20)),
        kind=st.sampled_from([*PointKind]),
    )
)
_counts = st.sampled_from(
    [words, len, lambda text: len(text.encode()), lambda text: words(text) + 5 * ("\n" in text.strip())]
)


@given(st.lists(_drafts, max_size=4), st.integers(1, 60), _counts, st.text(min_size=1, max_size=80))
def test_the_budget_is_never_exceeded_and_no_sentence_is_shortened(
    readings: list[list[DraftPoint]], budget: int, count: Any, name: str
) -> None:
    made = Ledger(budget, count)
    about = entries(*(message(n, speaker=name if n % 2 else "Bob") for n in range(1, 10)))
    whole: set[str] = set()
    for drafts in readings:
        update = made.add(drafts, about)
        whole |= {p.text for p in update.written}
        assert count(made.render()) <= budget
        assert {p.text for p in made.shown} <= {p.text for p in made.points} <= whole
        assert len(update.written) == len([d for d in drafts if d.text.split()]) or any(
            not d.text.strip() or not d.text.isprintable() for d in drafts
        )


# rewriting near the budget


def near_the_budget(count: int = 12, budget: int = 51) -> Ledger:
    """A ledger whose points of four words, and a dash each, fill its budget but for the headings."""
    told = [point(f"people measured gene TP{n}", n, kind=DECISION if n == 2 else CLAIM) for n in range(1, count + 1)]
    roomy = ledger(*told, about=heard(count))
    made = Ledger(budget, words)  # which they exceed here, so that there is much to be rewritten
    made.restore(roomy.points, (), roomy.next_id)
    return made


def rewritten(text: str, *merges: int, kind: PointKind = CLAIM) -> CompactedPoint:
    return CompactedPoint(text, kind, merges)


def test_a_ledger_with_room_asks_for_nothing() -> None:
    assert ledger(*(point(f"point {n}", n) for n in range(1, 9)), budget=100).compaction() is None


def test_points_are_to_be_rewritten_before_any_is_hidden() -> None:
    told = [point(f"people measured gene TP{n}", n) for n in range(1, 13)]  # 60 tokens, without the heading
    assert ledger(*told, budget=64, about=heard(12)).compaction() is None
    made = ledger(*told, budget=63, about=heard(12))
    request = made.compaction()
    assert (request is not None, made.shown) == (True, made.points)


def test_what_was_asked_about_just_now_is_left_apart() -> None:
    request = near_the_budget(budget=55).compaction(apart=frozenset({1, 2}))
    assert request is not None
    assert [known.id for known in request.points] == [3, 4, 5, 6]
    assert near_the_budget().compaction(apart=frozenset(range(1, 6))) is None, "one point alone"


def test_near_the_budget_the_oldest_points_are_to_be_rewritten_and_the_newest_left_alone() -> None:
    request = near_the_budget().compaction()
    assert request is not None
    assert [known.id for known in request.points] == [1, 2, 3, 4, 5, 6]
    assert len(request.points) == 12 - LEFT_ALONE
    assert request.tokens == 30 - 10, "what is to be saved less, which is a fifth of the budget at most"


def test_a_rewritten_sentence_takes_the_place_of_its_points_with_all_their_quotes() -> None:
    made = near_the_budget()
    request = made.compaction()
    assert request is not None
    result = CompactionResult((rewritten("TP1 and TP3 to TP6 were measured.", 1, 3, 4, 5, 6),), "stub")
    assert made.compact(request.points, result)
    assert texts(made)[:2] == ["people measured gene TP2", "TP1 and TP3 to TP6 were measured."]
    assert made.points[1].ids == (1, 3, 4, 5, 6)
    assert len(made.points) == 8
    assert len({p.id for p in made.points}) == 8


def test_claims_that_are_dropped_leave_and_what_the_reply_does_not_speak_of_stays_as_it_is() -> None:
    made = near_the_budget()
    request = made.compaction()
    assert request is not None
    result = CompactionResult((rewritten("TP1 was measured.", 1, 3),), "stub", dropped=frozenset({2, 4}))
    assert made.compact(request.points, result)
    assert [p.ids for p in made.points][:4] == [(2,), (1, 3), (5,), (6,)], "the decision stays"


def test_a_decision_that_was_settled_leaves_by_a_rewriting() -> None:
    made = near_the_budget()
    request = made.compaction()
    assert request is not None
    result = CompactionResult((), "stub", dropped=frozenset({4}), settled=frozenset({2, 9999}))
    assert made.compact(request.points, result)
    assert [p.ids for p in made.points][:3] == [(1,), (3,), (5,)]


def test_a_point_that_two_replace_lends_its_quotes_to_both_and_leaves_once() -> None:
    made = ledger(point("people dispute TP1", 1), about=heard(1))
    [old] = made.points
    more = [point("people chose TP1", 2, replaces=(old.id,)), point("people had wanted TP2", 3, replaces=(old.id,))]
    update = made.add(more, heard(3))
    assert ([p.ids for p in made.points], update.replaced) == ([(1, 2), (1, 3)], [old])


def test_a_point_keeps_the_quotes_of_one_that_it_rests_on_and_that_stays() -> None:
    made = ledger(point("TP1 is deep", 1), about=heard(1))
    [old] = made.points
    made.add([replace(point("people cut a rope for TP1", 2), rests_on=(old.id,))], heard(2))
    assert [p.ids for p in made.points] == [(1,), (1, 2)]


def test_points_that_are_over_leave_and_are_told_as_replaced() -> None:
    made = ledger(point("people will sequence TP1", 1), point("people will sequence TP2", 2), about=heard(2))
    [first, _] = made.points
    update = made.add([], heard(3), over=frozenset({first.id}))
    assert (update.replaced, update.written) == ([first], [])
    assert (texts(made), made.replaced) == (["people will sequence TP2"], [(first.id, first.time)])


def test_a_known_question_told_with_its_answer_names_who_asked_once() -> None:
    asked = DraftPoint("is TP1 stable?", (Quote(1, "is TP1 stable"),), QUESTION, by=("Jan",), spoken=True)
    heard_both = entries(message(1, speaker="Jan"), message(2, speaker="Ben"))
    made = ledger()
    made.add([asked], heard_both)
    [known] = made.points
    made.add([DraftPoint("Jan: is TP1 stable? – Ben: Yes.", (Quote(2, "Yes"),), replaces=(known.id,))], heard_both)
    assert made.render() == "Said:\n- Jan: is TP1 stable? – Ben: Yes."


def test_kinds_that_take_more_than_their_share_are_rewritten_before_others() -> None:
    told = [point(f"people measured gene TP{n}", n, kind=CLAIM if n % 10 == 0 else DECISION) for n in range(1, 61)]
    made = ledger(*told, about=heard(60))
    crowded = Ledger(200, words)
    crowded.restore(made.points, (), made.next_id)
    assert {p.kind for p in crowded.shown} == {DECISION}
    request = crowded.compaction()
    assert request is not None
    assert {known.kind for known in request.points} == {DECISION}, "claims take no more than their quarter"
    assert CLAIM in {known.kind for known in request.beside}
    result = CompactionResult((), "stub", settled=frozenset(known.id for known in request.points[:30]))
    assert crowded.compact(request.points, result)
    assert CLAIM in {p.kind for p in crowded.shown}, "what was hidden comes back"


def test_nothing_is_rewritten_once_one_of_the_points_was_replaced() -> None:
    made = near_the_budget()
    request = made.compaction()
    assert request is not None
    made.add([point("people did not measure TP1", 9, replaces=(1,))], heard(9))
    before = [*made.points]
    assert not made.compact(request.points, CompactionResult((rewritten("TP1 was measured.", 1, 2),), "stub"))
    assert made.points == before


def test_nothing_is_rewritten_that_would_not_get_shorter() -> None:
    made = near_the_budget()
    request = made.compaction()
    assert request is not None
    before = [*made.points]
    long = rewritten(" ".join(f"TP{n}" for n in range(80)), 1, 2, 3, 4, 5, 6)
    assert not made.compact(request.points, CompactionResult((long,), "stub"))
    assert made.points == before


def test_what_replaces_a_rewritten_decision_replaces_the_ones_it_was_made_of() -> None:
    told = [point(f"people will measure gene TP{n}", n, kind=DECISION) for n in range(1, 13)]
    made = ledger(*told, budget=60, about=heard(12))
    request = made.compaction()
    assert request is not None
    assert made.compact(
        request.points, CompactionResult((rewritten("All are measured.", 1, 2, kind=DECISION),), "stub")
    )
    whole = next(p for p in made.points if p.text == "All are measured.")
    made.add([point("none is measured", 9, kind=DECISION, replaces=(whole.id,))], heard(12))
    assert {number for number, _ in made.replaced} == {1, 2, whole.id}


def test_a_point_that_was_rewritten_often_keeps_a_bounded_number_of_quotes() -> None:
    about = heard(100)
    made = ledger(*(point(f"people measured TP{n}", *range(n, n + 9)) for n in range(1, 91)), about=about, budget=300)
    request = made.compaction()
    assert request is not None
    result = CompactionResult((rewritten("All measured.", *(known.id for known in request.points)),), "stub")
    assert made.compact(request.points, result)
    assert len(made.points[0].evidence) == MOST_EVIDENCE
    assert made.points[0].evidence[0].id == request.points[0].evidence[0].message


def test_a_point_that_was_rewritten_often_keeps_the_quotes_that_its_sentence_rests_on() -> None:
    about = heard(100)
    made = ledger(*(point(f"people measured TP{n}", *range(n, n + 9)) for n in range(1, 91)), about=about, budget=300)
    request = made.compaction()
    assert request is not None
    middle = request.points[len(request.points) // 2].evidence[4]
    text = f"All measured, as was said: {middle.text}."
    rewriting = CompactionResult((rewritten(text, *(known.id for known in request.points)),), "stub")
    assert made.compact(request.points, rewriting)
    assert middle.text in {quote.text for quote in made.points[0].evidence}


def test_dates_stand_beside_words_as_far_as_they_fit_and_no_point_leaves_for_one() -> None:
    claim, action = point("The pump was mended yesterday.", 1), point("Bob brings the cable tomorrow.", 2, kind=ACTION)
    said = "Said:\n- The pump was mended yesterday (2023-11-13)."
    whole = f"To do:\n- Bob brings the cable tomorrow (2023-11-15).\n{said}"
    room = words(whole)
    about = entries(message(1), message(2))
    assert ledger(claim, action, about=about, budget=room).render() == whole
    assert ledger(claim, action, about=about, budget=room - 1).render() == whole.replace(" (2023-11-13)", "")
    undated = whole.replace(" (2023-11-13)", "").replace(" (2023-11-15)", "")
    assert ledger(claim, action, about=about, budget=words(undated)).render() == undated


def test_who_asked_is_named_once_where_the_answer_alone_is_new() -> None:
    about = {2: entries(message(1), message(2, speaker="Bob"))[2]}
    exchange = "Alice: How fast is it? – Bob: Very."
    made = ledger(point(exchange, 2, by=("Alice", "Bob"), spoken=True), about=about)
    assert made.points[0].render() == exchange


def test_a_point_keeps_what_it_rests_on_though_another_of_its_reply_takes_that_points_place() -> None:
    for turned in (False, True):
        made = ledger(point("The pump costs 412 euros.", 1), about=heard(9))
        first = made.points[0].id
        drafts = [
            point("The pump costs 398 euros.", 2, replaces=(first,)),
            DraftPoint("Two pumps would have cost 824 euros.", quoting(3), rests_on=(first,)),
        ]
        made.add(drafts[::-1] if turned else drafts, heard(9))
        [two] = [one for one in made.points if one.text.startswith("Two")]
        assert two.ids == (1, 3)
