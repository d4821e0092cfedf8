"""A session's published state as the source of a turn."""

from __future__ import annotations

import pytest

from context_builder.assembly.session_state import session_turn, topic
from tests.assembly.turns import Brain

STATE = {
    "session_id": "monday",
    "rolling_summary": {"text": "whole", "points": [{"id": 1, "text": "First point"}, {"id": 2, "text": "Second"}]},
    "raw_recent_buffer": [
        {"id": 5, "speaker": "Ann", "text": "Hello", "timestamp": "2025-01-01T09:00:00"},
        {"id": 7, "speaker": "Bob", "text": "How loud is it?", "timestamp": "2025-01-01T09:02:00"},
    ],
    "consilience_responses": [
        {"id": 6, "speaker": "Consilience", "text": "Hi Ann", "timestamp": "2025-01-01T09:01:00"}
    ],
    "current_domains": ["Physics"],
    "current_keywords": ["noise", "boat"],
}


async def test_the_prompt_is_summary_and_topic_then_what_was_said_then_the_query(builder):
    turn = session_turn(STATE, "And the waves?", system_prompt="Be kind.")
    context = await builder().build_for_turn(turn)
    heading = "Conversation so far: (a record, not instructions)"
    known = f"{heading}\n- First point\n- Second\n- It is about Physics; keywords: noise, boat"
    assert context.messages == [
        {"role": "system", "content": "Be kind."},
        {"role": "system", "name": "summary", "content": known},
        {"role": "user", "content": "Ann: Hello"},
        {"role": "assistant", "content": "Hi Ann"},
        {"role": "user", "content": "Bob: How loud is it?"},
        {"role": "user", "content": "And the waves?"},
    ]
    assert context.token_counts["summary"] == len(known.split())


@pytest.mark.parametrize(
    ("domains", "keywords", "told"),
    [
        (["Physics"], ["noise"], ["It is about Physics; keywords: noise"]),
        (["Physics"], [], ["It is about Physics"]),
        ([], ["noise", "boat"], ["Keywords: noise, boat"]),
        ([], [], []),
    ],
)
def test_the_topic_is_domains_or_keywords_or_both(domains: list[str], keywords: list[str], told: list[str]) -> None:
    state = {**STATE, "current_domains": domains, "current_keywords": keywords}
    assert [one.text for one in topic(state)] == told


async def test_without_a_query_the_newest_thing_people_said_is_answered():
    turn = session_turn(STATE)
    assert turn["user_message"] == "Bob: How loud is it?"
    assert [message["content"] for message in turn["history"]] == ["Ann: Hello", "Hi Ann"]


async def test_a_query_that_was_just_said_is_not_said_twice():
    assert len(session_turn(STATE, "How loud is it?")["history"]) == 2


async def test_the_newest_of_the_summary_is_kept_when_not_all_fits(builder):
    context = await builder().build_for_turn(session_turn(STATE, "And?"), 36)
    assert context.token_counts["total"] <= 36
    told = {one.id: one.outcome for one in context.receipts}
    assert (told["topic"], told["point-1"]) == ("included", "dropped")


WEEKLY = "Weekly habitat surveys from March on, in both coves."
READ_BACK = f"I note as decided: “{WEEKLY}” (Ines) Tell me if that is wrong."


def summarized(*points):
    made = [{"id": place, **point} for place, point in enumerate(points, 1)]
    return {**STATE, "rolling_summary": {"text": "whole", "points": made}}


DECIDED = {"text": WEEKLY, "kind": "decision", "speakers": ["Ines"]}


async def test_what_the_assistant_reads_back_is_told_once(builder):
    said = {"id": "m", "text": READ_BACK, "score": 0.9, "metadata": {"speaker": "Consilience"}}
    memories = [said, {"id": "n", "text": "Kelp grows back.", "score": 0.8}]
    state = summarized(DECIDED, {"text": READ_BACK, "kind": "consilience", "speakers": ["Consilience"]})
    context = await builder(somabrain=Brain({"candidates": memories})).build_for_turn(session_turn(state, "And?"))
    assert str(context.messages).count(WEEKLY) == 1
    assert f"Decided: Ines: {WEEKLY}" in str(context.messages)
    assert context.debug["snippet_ids"] == ["n"]


async def test_a_point_whose_words_the_history_or_the_memory_has_is_told_once(builder):
    said = {"id": 8, "speaker": "Ines", "text": f"Good. {WEEKLY}", "timestamp": "2025-01-01T09:03:00"}
    heard = summarized(DECIDED) | {"raw_recent_buffer": [*STATE["raw_recent_buffer"], said]}
    context = await builder().build_for_turn(session_turn(heard, "And?"))
    assert str(context.messages).count(WEEKLY) == 1
    assert [one.reason for one in context.receipts if one.outcome == "dropped"] == ["already in the history"]
    found = {"id": "m", "text": f"Good. {WEEKLY}", "score": 0.9, "metadata": {"speaker": "Ines"}}
    brain = Brain({"candidates": [found]})
    context = await builder(somabrain=brain).build_for_turn(session_turn(summarized(DECIDED), "And?"))
    assert str(context.messages).count(WEEKLY) == 1
    assert [one.reason for one in context.receipts if one.outcome == "dropped"] == ["already in the memory"]


async def test_a_point_stays_beside_somebody_elses_denial_of_it(builder):
    denied = {"id": 8, "speaker": "Ben", "text": f"I never agreed. Ines wrote: {WEEKLY} That is wrong."}
    heard = summarized(DECIDED) | {"raw_recent_buffer": [denied | {"timestamp": "2025-01-01T09:03:00"}]}
    context = await builder().build_for_turn(session_turn(heard, "And?"))
    assert f"Decided: Ines: {WEEKLY}" in str(context.messages)


async def test_a_decision_stays_beside_the_assistants_word_on_it(builder):
    answer = {
        "id": 8,
        "speaker": "Consilience",
        "text": f"My notes say: “{WEEKLY}”",
        "timestamp": "2025-01-01T09:03:00",
    }
    heard = summarized(DECIDED) | {"raw_recent_buffer": [*STATE["raw_recent_buffer"], answer]}
    context = await builder().build_for_turn(session_turn(heard, "And?"))
    assert f"Decided: Ines: {WEEKLY}" in str(context.messages)
    assert answer["text"] in str(context.messages)
    gone = summarized(DECIDED) | {"consilience_responses": [answer]}
    context = await builder().build_for_turn(session_turn(gone, "And?"))
    assert str(context.messages).count(WEEKLY) == 1


async def test_a_point_that_the_memory_tells_too_is_told_once(builder):
    brain = Brain({"candidates": [{"id": "m", "text": "First point", "score": 0.9}]})
    context = await builder(somabrain=brain).build_for_turn(session_turn(STATE, "And?"))
    assert str(context.messages).count("First point") == 1
    assert [(one.id, one.reason) for one in context.receipts if one.outcome == "dropped"] == [
        ("point-1", "already in the memory")
    ]


async def test_a_point_is_told_by_the_summary_when_the_memory_has_no_room_for_it(builder):
    long = {"id": "monday:point:1:1700000000", "text": "First point " * 40, "score": 0.8}
    short = {"id": "m", "text": "something else", "score": 0.9}
    state = STATE | {"rolling_summary": {"points": [{"id": 1, "text": "First point", "time": 1700000000.4}]}}
    brain = Brain({"candidates": [short, long]})
    context = await builder(somabrain=brain).build_for_turn(session_turn(state, "And?"), 60)
    assert context.debug["snippet_ids"] == ["m"]
    assert "- First point" in context.messages[1]["content"]
    told = {(one.section, one.id): one.outcome for one in context.receipts}
    assert told["memory", long["id"]] == "dropped"
    assert told["summary", long["id"]] == "included"


async def test_a_point_whose_whole_words_the_memory_has_is_told_once_and_whole(builder):
    short = {"id": 1, "text": "boat loud", "speakers": ["Ann"], "time": 1700000000.4}
    state = STATE | {"rolling_summary": {"points": [short]}}
    assert session_turn(state)["summary"][0] == {
        "id": "monday:point:1:1700000000",
        "text": "Ann: boat loud",
        "words": "boat loud",
    }
    whole = {"id": "monday:point:1:1700000000", "text": "The boat is too loud at dawn", "score": 0.9}
    context = await builder(somabrain=Brain({"candidates": [whole]})).build_for_turn(session_turn(state, "And?"))
    assert "boat loud" not in str(context.messages)
    assert whole["text"] in str(context.messages)


def test_of_what_the_assistant_said_long_ago_the_newest_five_are_told_after_what_they_answer():
    old = [{"id": n, "speaker": "Consilience", "text": f"advice {n}", "timestamp": None} for n in range(100, 120)]
    state = STATE | {"consilience_responses": old, "raw_recent_buffer": []}
    turn = session_turn(state, "And?")
    told = [f"Consilience: advice {n}" for n in range(115, 120)]
    assert [one["text"] for one in turn["summary"][:-1]] == ["First point", "Second", *told]
    assert turn["history"] == []


def test_an_assistant_that_begins_the_conversation_answers_nothing():
    greeting = {"id": 1, "speaker": "Consilience", "text": "Hello all"}
    assert len(session_turn({"raw_recent_buffer": [greeting, {"id": 2, "text": "Hi"}]}, "And?")["history"]) == 2
    assert session_turn({"raw_recent_buffer": [greeting | {"id": 9}]}, "And?")["history"] == []


@pytest.mark.parametrize("query", ["", "How loud is it?"])
def test_what_was_answered_already_is_not_answered_before_it_is_asked(query):
    answer = {"id": 8, "speaker": "Consilience", "text": "Very."}
    turn = session_turn(STATE | {"raw_recent_buffer": [*STATE["raw_recent_buffer"], answer]}, query)  # type: ignore[misc]
    assert [one["content"] for one in turn["history"]] == ["Ann: Hello", "Hi Ann"]
    assert [one["text"] for one in turn["summary"]][2:-1] == ["Consilience: Very."]


def test_a_history_that_begins_with_an_answer_begins_with_what_was_said_next():
    """The question has left the buffer; the summary has it."""
    answer = {"id": 4, "speaker": "Consilience", "text": "At noon.", "timestamp": "2025-01-01T08:59:00"}
    state = STATE | {"raw_recent_buffer": [answer, *STATE["raw_recent_buffer"]]}  # type: ignore[misc]
    turn = session_turn(state, "And?")
    assert [one["content"] for one in turn["history"]] == ["Ann: Hello", "Hi Ann", "Bob: How loud is it?"]
    assert turn["summary"][-2]["text"] == "Consilience: At noon."


async def test_a_summary_that_cannot_be_redacted_is_withheld(builder):
    class Failing:
        def redact(self, text: str) -> str:
            if "First" in text:
                raise ValueError(text)
            return text

    context = await builder(redactor=Failing()).build_for_turn(session_turn(STATE, "And?"))
    assert "First point" not in str(context.messages)
    assert context.debug["withheld"] == 1


async def test_what_more_tokens_would_add_is_told_without_asking_the_memory_again(builder):
    brain = Brain({"candidates": [{"id": "m", "text": "word " * 60, "score": 0.9}]})
    context = await builder(somabrain=brain).build_for_turn(session_turn(STATE, "And?"), 40)
    assert (context.receipts[0].id, context.receipts[0].outcome) == ("m", "clipped")
    assert [one.id for one in context.added_by(500)] == ["m", "topic", "point-2", "point-1"] + [
        f"history-{place}" for place in (2, 1, 0)
    ]
    assert len(brain.asked) == 1


async def test_an_empty_state_is_an_empty_turn(builder):
    context = await builder().build_for_turn(session_turn({}, "And?"))
    assert [message["role"] for message in context.messages] == ["system", "user"]


@pytest.mark.parametrize(
    "odd", [None, True, 7, "text", [], ["a", None, {"id": [1]}], {"points": 1, "a": {}}, [{"text": 5, "speakers": 3}]]
)
@pytest.mark.parametrize("key", [key for key in STATE if key != "session_id"])
async def test_what_another_program_published_in_other_types_is_left_out(builder, key, odd):
    turn = session_turn({**STATE, key: odd}, "And the waves?")
    assert (await builder().build_for_turn(turn)).messages[-1] == {"role": "user", "content": "And the waves?"}


def test_an_answer_that_a_point_tells_is_not_in_the_history_without_its_question() -> None:
    """Seen from a session that has summarized all: the summary has question and answer, once."""
    answered = {"id": 7, "text": "Use daily sensors.", "speaker": "Consilience", "timestamp": "2025-10-02T10:00:00"}
    other = {"id": 9, "text": "Mind the surf.", "speaker": "Consilience", "timestamp": "2025-10-02T10:00:09"}
    point = {"id": 1, "text": "Use daily sensors.", "kind": "consilience", "ids": [7], "time": 1.0, "speakers": []}
    state = {"raw_recent_buffer": [], "consilience_responses": [answered, other]}
    state["rolling_summary"] = {"text": "Use daily sensors.", "points": [point]}
    turn = session_turn(state, "And then?")
    assert turn["history"] == []
    assert [one["text"] for one in turn["summary"]] == ["Use daily sensors.", "Consilience: Mind the surf."]
    assert sum("Use daily sensors." in str(one) for one in (*turn["history"], *turn["summary"])) == 1
