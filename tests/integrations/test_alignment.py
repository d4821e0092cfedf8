"""A framework's history and the record become one talk."""

from __future__ import annotations

import pytest

from context_builder.integrations.alignment import MOST_PARTS, MOST_STEPS, RecordSearch, merged

SUMMARY, MEMORY = ("system", "Conversation so far"), ("system", "Relevant memory: Ida: Hello.")
HELLO, HI = ("user", "Ida: Hello."), ("assistant", "Hi.")
CARA = ("user", "Cara: The boat leaves at nine.")
ASKED, BOAT = ("user", "Ben: When does it leave?"), ("assistant", "You asked: When does it leave? At nine.")


def plain(*messages: tuple[str, str]) -> list[tuple[str, str]]:
    """The messages as a framework has them, without names."""
    return [(role, text.partition(": ")[2] if role == "user" else text) for role, text in messages]


def texts(own: list[tuple[str, str]], *record: tuple[str, str]) -> list[str]:
    """The merged talk: of what both have, the record's words."""
    return [
        " ".join(record[number][1] for number in place.told) if place.told else own[place.own or 0][1]
        for place in merged(own, record)
    ]


def test_what_others_said_stands_where_they_said_it() -> None:
    own = [("system", "Be brief."), *plain(HELLO, HI, ASKED)]
    assert texts(own, SUMMARY, HELLO, HI, CARA, ASKED, MEMORY) == [
        text for _, text in (own[0], SUMMARY, MEMORY, HELLO, HI, CARA, ASKED)
    ]


def test_an_answer_that_repeats_its_question_replaces_nothing() -> None:
    own = plain(ASKED, BOAT, HELLO)
    assert texts(own, ASKED, BOAT, MEMORY) == [MEMORY[1], ASKED[1], BOAT[1], "Hello."]


def test_a_tools_call_stays_between_its_question_and_its_answer() -> None:
    own = [*plain(ASKED), ("", "call"), ("tool", "nine"), *plain(BOAT, HELLO)]
    assert texts(own, SUMMARY, HELLO, ASKED, CARA, BOAT) == [
        *(SUMMARY[1], HELLO[1], ASKED[1], CARA[1], "call", "nine", BOAT[1]),
        "Hello.",  # said again, and answered not yet
    ]


def test_a_turn_may_have_been_said_in_several_and_twice() -> None:
    record = [("user", "Ida: We count."), CARA, ("user", "Ben: We stop."), HI]
    own = [("user", "We count. We stop. We count."), HI, ("user", "And?")]
    (first, *_), *_ = [[place.told for place in merged(own, record) if place.own == 0]]
    assert first == (0, 2)
    assert len(merged(own, record)) == 4


@pytest.mark.parametrize("question", ["Yes.", "No."])
def test_who_says_the_same_again_asks_again(question: str) -> None:
    again, answer = ("user", f"Ida: {question}"), ("assistant", "Noted.")
    assert texts([("user", question)], again, answer) == [again[1], answer[1], question]
    assert texts([("user", question)], again, answer, again) == [again[1], answer[1], again[1]]


def test_after_a_handoff_the_answer_stands_behind_the_question() -> None:
    own = [*plain(ASKED), ("system", "Greet.")]
    assert texts(own, ASKED, BOAT, MEMORY) == [MEMORY[1], ASKED[1], BOAT[1], "Greet."]


def test_without_a_question_what_was_said_last_stands_last() -> None:
    assert texts([("system", "Be brief."), HI], SUMMARY, HI, CARA, MEMORY) == [
        *("Be brief.", SUMMARY[1], MEMORY[1], HI[1], CARA[1])
    ]
    assert texts([("system", "Be brief.")], SUMMARY, CARA) == ["Be brief.", SUMMARY[1], CARA[1]]
    assert texts([], CARA) == [CARA[1]]


def test_what_was_corrected_is_there_as_corrected() -> None:
    said, corrected = ("user", "We sail at eight."), ("user", "Ida: We sail at nine.")
    own, record = [*plain(HELLO), said, HI, *plain(ASKED)], [HELLO, corrected, CARA, HI]
    places = merged(own, record, {1: said[1].__eq__, 2: "Something else.".__eq__})
    assert [(place.own, *place.told) for place in places] == [(0, 0), (1, 1), (None, 2), (2, 3), (3,)]


def test_what_is_merely_alike_replaces_nothing() -> None:
    own = [("user", "yes we should sail today"), HI, *plain(ASKED)]
    no = ("user", "Ben: no we should not sail today")
    assert texts(own, no, HI) == [own[0][1], no[1], HI[1], own[2][1]]


def test_what_was_said_after_an_answer_stands_behind_it() -> None:
    own = [*plain(HELLO), ("user", "Said elsewhere?"), HI]
    assert texts(own, HELLO, ASKED, HI, CARA) == [HELLO[1], ASKED[1], "Said elsewhere?", HI[1], CARA[1]]


def test_a_systems_message_within_the_talk_is_told_once_before_it() -> None:
    assert texts([*plain(HELLO, HI), ("user", "And?")], HELLO, SUMMARY, HI, MEMORY) == [
        *(SUMMARY[1], MEMORY[1], HELLO[1], HI[1], "And?")
    ]


def test_what_is_older_than_the_record_stays_before_it() -> None:
    own = [("user", "Long ago."), ("assistant", "Yes."), *plain(HELLO, HI, ASKED)]
    assert texts(own, SUMMARY, HELLO, HI) == [SUMMARY[1], "Long ago.", "Yes.", HELLO[1], HI[1], "When does it leave?"]


def test_the_same_again_and_again_takes_no_time() -> None:
    own = [("user", "a " * 50_000), *[("user", "a")] * 300]
    assert len(merged(own, [("user", "Ida: a")] * 100)) == 301


def test_a_search_ends_after_so_many_steps_and_loses_nothing() -> None:
    record, own = [("user", "A: ok")] * 200, [("user", f"{'ok ' * 20}{number}") for number in range(200)]
    search = RecordSearch(record)
    assert [search.runs(*one) for one in own][-1] is None
    assert search.steps <= MOST_STEPS + len(own) * len(record) + 2 * MOST_PARTS**2
    places = merged([*own, ("user", "ok")], record)
    assert [place.own for place in places if place.own is not None] == [*range(201)]
    assert [number for place in places for number in place.told] == [*range(200)]
    assert places[-1].told == (199,)


def test_the_same_text_is_looked_for_once() -> None:
    search = RecordSearch([("user", "A: ok")] * 200)
    search.runs("user", "ok ok ok no")
    before = search.steps
    assert search.runs("user", "ok ok ok no") == {}
    assert search.steps == before + 1


def test_a_text_is_compared_with_those_alone_that_begin_like_it() -> None:
    said = [f"{number} clips were labelled by hand." for number in range(1_000)]
    search = RecordSearch([("user", f"Ida: {one}") for one in said])
    assert [search.runs("user", one) for one in said] == [{number: [number]} for number in range(1_000)]
    assert search.steps < 20 * len(said)


def test_a_question_that_was_corrected_before_its_answer_is_told_once() -> None:
    first = {2: "When does it sail?".__eq__}
    places = merged([*plain(HELLO, HI), ("user", "When does it sail?")], [HELLO, HI, ASKED], first)
    assert [(place.own, *place.told) for place in places] == [(0, 0), (1, 1), (2, 2)]
    again = merged([("user", "When does it sail?")], [ASKED, BOAT], {0: first[2]})
    assert [(place.own, *place.told) for place in again] == [(None, 0), (None, 1), (0,)]
