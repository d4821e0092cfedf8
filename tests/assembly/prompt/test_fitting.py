"""What another part of the prompt tells already is left out, and says so; what only seems told stays."""

from __future__ import annotations

from typing import Any

import pytest

from context_builder.assembly.candidate import Candidate, ContextType, Signal
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.fit import Fitted, fit
from context_builder.assembly.govern import RedactionPolicy
from context_builder.assembly.section import Item, MessageTokenCounter
from context_builder.assembly.select import Draft, Selection
from context_builder.redaction.redactor import NoopRedactor

COUNTER = MessageTokenCounter(lambda text: len(text.split()))
PREFERENCE, MEMORY, RECENT = ContextType.USER_PREFERENCES, ContextType.SEMANTIC, ContextType.RECENT
CALL = [
    {"role": "assistant", "content": "I look it up", "tool_calls": [{"id": "t"}]},
    {"role": "tool", "tool_call_id": "t", "content": "the ferry leaves at nine, says the harbour"},
]


def item(kind: ContextType, name: str, text: str, **more: Any) -> Item:
    candidate = Candidate(
        name, text, kind, score=0.5, signals=(Signal("similarity", 1, 0.5),), origins=("notes",), **more
    )
    return Item(name, text, 0.5, {"role": "user", "content": text} if kind is RECENT else None, candidate=candidate)


def fitted(*items: Item, limit: int = 500, history: Any = (), **draft: Any) -> Fitted:
    order = (PREFERENCE, RECENT, MEMORY)
    kinds = {kind: [one for one in items if one.candidate and one.candidate.type is kind] for kind in order}
    drafted = Draft("ferry", (), (), order, AssemblyConfig(), history, **draft)
    return fit(Selection(drafted, kinds, (), ()), limit, COUNTER, RedactionPolicy(NoopRedactor()))


def left_out(made: Fitted, section: str = "memory") -> dict[str, str]:
    return {one.id: one.reason for one in made.receipts() if one.outcome == "dropped" and one.section == section}


@pytest.mark.parametrize("memory", [("p", "in other words"), ("m", "prefers tea")])
def test_a_memory_that_a_preference_tells_by_its_id_or_its_text_is_left_out(memory):
    made = fitted(item(PREFERENCE, "p", "prefers tea"), item(MEMORY, *memory))
    assert left_out(made) == {memory[0]: "already in the preferences"}
    [told] = made.refused
    assert (told.score, told.signal("similarity"), told.signal("recency"), told.origins) == (0.5, 0.5, None, ("notes",))


def test_what_is_shown_of_a_clipped_preference_does_not_tell_a_memory():
    long = "prefers tea " * 30
    made = fitted(item(PREFERENCE, "p", long), item(MEMORY, "p", long), limit=40)
    assert made.taken(PREFERENCE)[0].clipped
    assert left_out(made)["p"].startswith("does not fit")


def test_what_the_user_says_leaves_out_a_memory_but_no_preference():
    said = {"prefers tea": "already in the user's message"}
    made = fitted(item(PREFERENCE, "p", "prefers tea"), item(MEMORY, "m", "likes waves"), present_texts=said)
    assert (left_out(made, "preferences"), left_out(made)) == ({}, {})
    assert left_out(fitted(item(MEMORY, "m", " prefers tea "), present_texts=said)) == {"m": said["prefers tea"]}


@pytest.mark.parametrize("told", ["I look it up", "the ferry leaves at nine, says the harbour"])
def test_a_memory_that_a_tool_or_its_call_tells_is_left_out(told):
    memory = item(MEMORY, "m", told)
    assert left_out(fitted(memory, history=CALL)) == {"m": "already in the history"}


@pytest.mark.parametrize("said", ["Ann: the ferry is late", "the ferry is late"])
def test_a_memory_is_told_with_its_speaker_before_it_or_without(said):
    history = [{"role": "user", "content": said}]
    assert left_out(fitted(item(MEMORY, "m", "the ferry is late", speaker="Ann"), history=history)) == {
        "m": "already in the history"
    }
    assert left_out(fitted(item(MEMORY, "m", "the ferry is late", speaker="Bob"), history=history)) == (
        {} if said.startswith("Ann") else {"m": "already in the history"}
    )


def test_what_the_user_says_now_is_no_memory_with_a_date_beside_its_words():
    said = {"Amara: We meet in two weeks.": "already in the user's message"}
    memory = item(MEMORY, "m", "We meet in two weeks (2026-12-07 – 2026-12-13).", speaker="Amara")
    assert left_out(fitted(memory, present_texts=said)) == {"m": "already in the user's message"}


def test_messages_of_a_source_that_are_too_old_say_so_with_their_score():
    spoken = [item(RECENT, f"r{place}", "word " * 10) for place in range(4)]
    made = fitted(*spoken, limit=40)
    reasons = left_out(made, "history")
    assert [one.id for one in made.taken(RECENT)] == ["r0", "r1"]
    assert reasons == {"r2": "does not fit: 14 tokens where 9 are left", "r3": "older than what fits"}
    assert {one.id: one.score for one in made.receipts()}["r3"] == 0.5
