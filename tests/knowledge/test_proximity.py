"""What few heavy edges join to the seeds is nearer than what many or light ones do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.knowledge.artifact import Link
from context_builder.knowledge.local import proximity


def edge(one: str, other: str, weight: float = 1.0) -> Link:
    return Link(from_ref=one, to_ref=other, type="cites", weight=weight)


def test_nearer_is_higher_whichever_way_the_edges_point() -> None:
    near = proximity({"a": 1.0}, [edge("a", "b"), edge("c", "b"), edge("c", "d")])
    assert near["b"] > near["c"] > near["d"] > 0
    assert max(near.values()) == 1.0


def test_a_heavy_edge_leads_nearer_than_a_light_one() -> None:
    near = proximity({"a": 1.0}, [edge("a", "b", 3.0), edge("a", "c", 1.0)])
    assert near["b"] == pytest.approx(3 * near["c"])


def test_what_two_seeds_join_is_nearer_than_what_one_does() -> None:
    near = proximity({"a": 1.0, "b": 1.0}, [edge("a", "both"), edge("b", "both"), edge("a", "one"), edge("b", "two")])
    assert near["both"] > near["one"] == pytest.approx(near["two"])


def test_what_is_not_joined_is_not_there_and_a_lone_seed_is() -> None:
    assert proximity({"a": 1.0}, [edge("b", "c")]) == {"a": 1.0}
    assert proximity({}, [edge("b", "c")]) == {}
    assert proximity({"a": 0.0}, [edge("a", "c")]) == {}


REFS = st.sampled_from("abcdefgh")


@given(
    st.dictionaries(REFS, st.floats(0, 10), min_size=1),
    st.lists(st.builds(edge, REFS, REFS, st.floats(0.001, 1_000)), max_size=30),
)
def test_it_is_always_between_0_and_1(seeds: dict[str, float], edges: list[Link]) -> None:
    near = proximity(seeds, edges)
    assert all(0 <= value <= 1 for value in near.values())
    assert not near or max(near.values()) == 1.0
    assert set(near) <= {*seeds, *(ref for one in edges for ref in (one.from_ref, one.to_ref))}
