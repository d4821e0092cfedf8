"""Whatever a conversation and its budget are, an answer has before it what it answers, and nothing is told twice."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder import ConversationContext
from context_builder.assembly import ContextBuilder
from context_builder.assembly.session_state import session_turn
from context_builder.assembly.strategies import SessionMessagesStrategy
from context_builder.errors import TokenLimitExceeded
from context_builder.testing import ManualClock
from tests.assembly.turns import Brain

CALL = [
    {"role": "assistant", "content": None, "tool_calls": [{"id": "t"}]},
    {"role": "tool", "tool_call_id": "t", "content": "found " * 5},
]
words = st.integers(1, 40).map("word ".__mul__)
exchange = st.lists(words.map(lambda text: [{"role": "assistant", "content": text}]) | st.just(CALL), max_size=3)
conversations = st.lists(st.tuples(words, exchange), max_size=6).map(
    lambda made: [
        one
        for asked, answers in made
        for one in ({"role": "user", "content": asked}, *(each for answer in answers for each in answer))
    ]
)


def unanswered(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the assistant's messages before the first thing that somebody said to it."""
    roles = [one["role"] for one in messages]
    return [one for one in messages[: roles.index("user") if "user" in roles else None] if one["role"] != "system"]


@given(conversations, st.integers(20, 300))
async def test_no_cut_by_the_budget_leaves_an_answer_without_its_question(history, limit):
    builder = ContextBuilder(somabrain=Brain(), token_counter=lambda text: len(text.split()))
    context = await builder.build_for_turn({"user_message": "And?", "history": history}, limit)
    await builder.drain()
    assert unanswered(context.history) == []
    assert len(history) - len(context.history) == context.debug["history_trimmed"]


async def test_an_answer_says_that_what_it_answers_does_not_fit(builder):
    history = [{"role": "user", "content": "long " * 99}, {"role": "assistant", "content": "Yes."}]
    context = await builder().build_for_turn({"user_message": "And?", "history": history}, 60)
    assert context.history == []
    assert next(one.reason for one in context.receipts) == "what it answers does not fit"


@pytest.mark.parametrize("seed", range(4))
async def test_of_a_session_summarized_at_any_moment_no_answer_lost_its_question_and_no_message_is_a_point_too(seed):
    chance = random.Random(seed)
    context = ConversationContext("monday", clock=ManualClock())
    for number in range(1, 25):
        speaker, text = chance.choice(
            [
                ("Ann", f"We decide to buy {number} sensors."),
                ("Bob", f"How loud is boat {number}?"),
                ("Consilience", f"Boat {number} is quiet."),
            ]
        )
        await context.add_message({"speaker": speaker, "text": text, "message_number": number})
        if chance.random() < 0.2:
            await context.update_summary()
    state = context.to_dict()
    published = {one["id"] for one in state["raw_recent_buffer"]}
    assert not [one for one in state["rolling_summary"]["points"] if published & set(one["ids"])]
    builder = ContextBuilder(somabrain=Brain(), token_counter=lambda text: len(text.split()))
    for query in ("", "And?"):
        for limit in range(20, 400, 16):
            try:
                built = await builder.build_for_turn(session_turn(state, query), limit)
            except TokenLimitExceeded:
                continue
            history = [*built.history, {"role": "user"}]
            begins = state["rolling_summary"]["points"] == [] and len(built.history) == len(state["raw_recent_buffer"])
            assert begins or unanswered(history) == []
            block = str([one["content"] for one in built.messages if one.get("name") == "summary"])
            for one in state["raw_recent_buffer"]:
                said = str([said["content"] for said in history[:-1]])
                assert not (one["text"] in said and one["text"] in block)
    await builder.drain()


@pytest.mark.parametrize("count", range(2, 7))
async def test_the_newest_messages_of_a_session_begin_with_a_question_however_many_are_wanted(count):
    said = [{"id": n, "speaker": "Ann" if n % 3 else "Consilience", "text": f"words {n}"} for n in range(1, 10)]
    builder = ContextBuilder.new().with_strategy(SessionMessagesStrategy({"raw_recent_buffer": said}, count))
    built = await builder.with_query("And?").build()
    assert unanswered(built.messages) == []
