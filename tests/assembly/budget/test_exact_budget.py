"""The token budget: exact, and hard for any input."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.assembly import AssemblyConfig, ContextBuilder
from context_builder.assembly.section import MessageTokenCounter
from context_builder.errors import TokenLimitExceeded
from context_builder.tokens.counter import TokenCounter
from tests.assembly.turns import Brain, generated, recount

COUNTERS = {
    "o200k_base": TokenCounter("gpt-4o").count,
    "words": lambda text: len(text.split()),
    "characters": len,
    "bytes": lambda text: len(text.encode("utf-8", "surrogatepass")),
}


@pytest.mark.parametrize("choose", ["greedy", "knapsack"])
async def test_no_generated_turn_exceeds_its_budget(choose):
    tally = MessageTokenCounter(COUNTERS["o200k_base"])
    brain = Brain()
    builder = ContextBuilder(
        somabrain=brain, token_counter=COUNTERS["o200k_base"], config=AssemblyConfig(choose=choose)
    )
    built = 0
    for seed in range(250):
        turn, brain.answer, limit = generated(seed)
        try:
            context = await builder.build_for_turn(turn, limit)
        except TokenLimitExceeded:
            continue
        counts = context.token_counts
        assert counts["total"] == tally.prompt(context.messages) <= limit
        assert sum(counts.values()) == 2 * counts["total"]
        built += 1
    assert built > 125
    await builder.drain()


messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant"]), "content": st.text(max_size=200)},
    optional={"name": st.text(max_size=9)},
)
turns = st.fixed_dictionaries(
    {
        "system_prompt": st.text(max_size=60),
        "user_message": st.text(max_size=60),
        "history": st.lists(messages, max_size=12),
    }
)
answers = st.lists(
    st.fixed_dictionaries({"text": st.text(max_size=300), "score": st.floats() | st.none()}), max_size=10
)


@given(turns, answers, st.integers(-5, 400), st.sampled_from(sorted(COUNTERS)))
async def test_the_total_is_an_exact_recount_and_within_the_limit(turn, answer, limit, counter):
    count = COUNTERS[counter]
    builder = ContextBuilder(somabrain=Brain({"candidates": answer}), token_counter=count)
    try:
        context = await builder.build_for_turn(turn, limit)
    except TokenLimitExceeded:
        return
    finally:
        await builder.drain()
    assert context.token_counts["total"] == recount(context.messages, count) <= limit
    kept = context.messages[1 : 1 + len(context.history)]
    whole = kept[1:] if kept and str(kept[0]["content"]).endswith("…") else kept
    assert whole == turn["history"][len(turn["history"]) - len(whole) :]


def test_overhead_is_counted_as_openai_counts_it():
    tally = MessageTokenCounter(lambda text: len(text.split()))
    assert tally.prompt([]) == 3
    assert tally.prompt([{"role": "user", "content": "two words"}]) == 3 + 3 + 1 + 2
    assert tally.prompt([{"role": "user", "name": "Ann", "content": "two words"}]) == 3 + 3 + 1 + 1 + 1 + 2


def test_a_text_is_counted_once():
    counted = []
    tally = MessageTokenCounter(lambda text: counted.append(text) or 1)
    assert tally.text("hello") == tally.text("hello") == 1
    assert counted == ["hello"]


def test_a_call_of_tools_costs_its_json():
    tally = MessageTokenCounter(len)
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "é"}]}
    assert tally.message(call) == 3 + len("assistant") + len("null") + len('[{"id": "é"}]')
    moment = {"role": "user", "content": "now", "at": Path("noon")}
    assert tally.message(moment) == 3 + len("user") + len("now") + len('"noon"')


def test_what_is_remembered_of_texts_counted_is_bounded():
    counted = []
    tally = MessageTokenCounter(lambda text: counted.append(text) or 1)
    for place in range(10_000):
        tally.text(str(place))
    assert tally.text("9999") == tally.text("0") == 1
    assert (counted.count("9999"), counted.count("0")) == (1, 2)


def test_a_very_long_text_is_counted_and_not_kept():
    counted = []
    tally = MessageTokenCounter(lambda text: counted.append(text) or len(text))
    assert tally.text("x" * 40_000) == tally.text("x" * 40_000) == 40_000
    assert len(counted) == 2
