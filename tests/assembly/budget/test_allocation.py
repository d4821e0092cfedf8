"""The fit stage alone: order of sections, knapsack, clipping."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.assembly.budget import SHORTEST, best_subset, clipped, receipts_of, shortened
from context_builder.assembly.section import Block, Dialogue, Item, MessageTokenCounter, plain_texts
from context_builder.errors import TokenLimitExceeded
from tests.assembly.budget.sections import fit

TALLY = MessageTokenCounter(lambda text: len(text.split()))


def dialogue(*texts: str) -> Dialogue:
    items = [Item(text, text, message={"role": "user", "content": text}) for text in texts]
    return Dialogue("recent", items, TALLY)


def block(*texts: str) -> Block:
    return Block("memory", "Memory:", [Item(text, text) for text in texts], TALLY, bodies=plain_texts)


@pytest.mark.parametrize("first", ["recent", "memory"])
def test_the_order_of_the_sections_is_the_order_in_which_they_are_kept(first):
    sections = {"recent": dialogue("a " * 10), "memory": block("b " * 10)}
    order = [sections.pop(first), *sections.values()]
    parts = fit(order, required=5, limit=28)
    assert parts[first].taken
    assert not parts[order[1].name].taken


def test_history_has_no_gaps_but_memories_may():
    parts = fit([dialogue("new", "long " * 50, "old"), block("long " * 80, "short")], required=0, limit=40)
    assert [item.text for item in parts["recent"].taken] == ["new"]
    assert [item.text for item in parts["memory"].taken] == ["short"]


def test_a_section_that_costs_more_than_its_items_gives_up_the_last_of_them():
    whole = MessageTokenCounter(lambda text: len(text.split()) + 5 * (text.count("- ") > 2))
    section = Block("memory", "Memory:", [Item(text, text) for text in "abcd"], whole, bodies=plain_texts)
    room = whole.message(section.messages(section.items)[0]) - 3
    part = fit([section], required=0, limit=room)["memory"]
    assert [item.text for item in part.taken] == ["a", "b"]
    assert part.left[:2] == [
        (section.items[2], f"does not fit: {room + 1} tokens where {room} are left"),
        (section.items[3], f"does not fit: {room + 3} tokens where {room} are left"),
    ]
    assert part.tokens == section.measure(part.taken) <= room


def test_what_is_too_large_is_there_as_the_longest_of_its_projections_that_fits():
    large = Item("large", "a " * 90, projections=("b " * 60, "c " * 20, "d"))
    section = Block("memory", "Memory:", [large, Item("small", "e")], TALLY, bodies=plain_texts)
    part = fit([section], required=0, limit=50)["memory"]
    assert [item.text.strip()[0] for item in part.taken] == ["c", "e"]
    shorter, _, *left = receipts_of(part)
    assert (shorter.id, shorter.outcome, shorter.reason) == ("large", "summarised", "too large for what was left")
    assert left == []
    assert large.text == "a " * 90


def test_a_knapsack_takes_one_of_great_value_before_two_of_little():
    items = [Item("two", "a a", 0.3), Item("other", "b b", 0.2), Item("one", "c c c c", 0.9)]
    section = Block("memory", "Memory:", items, TALLY, bodies=plain_texts)
    room = section.opening + section.cost(items[2])
    assert [item.id for item in fit([section], required=0, limit=room, choose="knapsack")["memory"].taken] == ["one"]
    assert [item.id for item in fit([section], required=0, limit=room)["memory"].taken] == ["two"]


def test_what_fits_exactly_is_taken():
    section = block("first", "second")
    room = section.measure(section.items)
    assert len(fit([section], required=7, limit=room + 7)["memory"].taken) == 2
    assert len(fit([section], required=8, limit=room + 7)["memory"].taken) == 1


def test_a_call_of_tools_costs_its_answers_as_well():
    call = {"role": "assistant", "content": "I look it up", "tool_calls": "x"}
    answers = tuple({"role": "tool", "content": "one two three"} for _ in range(2))
    section = Dialogue("recent", [Item("0..2", "I look it up", message=call, answers=answers)], TALLY)
    whole = sum(map(TALLY.message, section.messages(section.items)))
    assert section.cost(section.items[0]) == whole == 9 + 7 + 7
    assert fit([section], required=0, limit=whole)["recent"].tokens == whole


def test_required_tokens_over_the_limit_are_refused():
    with pytest.raises(TokenLimitExceeded):
        fit([], required=11, limit=10)


@given(st.lists(st.tuples(st.floats(0.01, 1), st.integers(0, 30)), max_size=9), st.integers(0, 100))
def test_a_knapsack_is_as_good_as_trying_everything(things, room):
    values, costs = [value for value, _ in things], [cost for _, cost in things]
    places = range(len(things))
    subsets = (chosen for size in range(len(things) + 1) for chosen in combinations(places, size))
    best = max(sum(values[i] for i in chosen) for chosen in subsets if sum(costs[i] for i in chosen) <= room)
    taken = best_subset(values, costs, room)
    assert sum(costs[i] for i in taken) <= room
    assert sum(values[i] for i in taken) == pytest.approx(best)
    assert taken == sorted(taken)


@given(st.text(max_size=300), st.integers(0, 60))
def test_what_is_clipped_fits_and_ends_in_a_mark(text, room):
    def fits(candidate: str) -> bool:
        return len(candidate.encode("utf-8", "replace")) <= room

    short = clipped(text, fits)
    if short is None:
        assert len(text) <= SHORTEST or not fits(shortened(text, SHORTEST))
    else:
        assert fits(short)
        assert short.endswith("…")
        assert text.startswith(short[:-1])
