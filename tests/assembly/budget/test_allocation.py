"""The fit stage alone: order of sections, knapsack, clipping."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.assembly.budget.allocation import best_subset, fit
from context_builder.assembly.budget.message_tokens import MessageTokenCounter
from context_builder.assembly.budget.section import Block, Dialogue, Item, listed
from context_builder.assembly.budget.truncate import SHORTEST, clipped, shortened
from context_builder.errors import TokenLimitExceeded

TALLY = MessageTokenCounter(lambda text: len(text.split()))


def dialogue(*texts: str) -> Dialogue:
    items = [Item(text, text, message={"role": "user", "content": text}) for text in texts]
    return Dialogue("recent", items, TALLY)


def block(*texts: str) -> Block:
    return Block("memory", "Memory:", [Item(text, text) for text in texts], TALLY, entry=listed)


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
