"""What views are drawn from, without a server: the graph, the prompt's parts and changes, a search's form."""

from __future__ import annotations

import pytest

from context_builder.assembly.budget import Outcome, Receipt
from context_builder.assembly.candidate import Signal
from context_builder.errors import FilterInvalid
from context_builder.server.page.views.memory import MemorySearch
from context_builder.server.page.views.packages import MOST, drawn
from context_builder.server.page.views.prompts import changes, grouped, is_rated
from context_builder.server.problem import problem_of

GRAPH = {
    "nodes": [
        {"ref": "point:monday/1", "proximity": 1.0},
        {"ref": "message:monday/7", "proximity": 0.5},
        {"ref": "artifact:protocol", "proximity": 0.4},
        {"ref": "point:monday/2", "proximity": 0.3},
    ],
    "edges": [
        {"from": "point:monday/1", "to": "message:monday/7", "type": "cites", "weight": 1.0},
        {"from": "point:monday/2", "to": "point:monday/1", "type": "follows", "weight": 0.5},
        {"from": "point:monday/1", "to": "artifact:protocol", "type": "about", "weight": 1.0},
    ],
}


def test_a_graph_is_drawn_in_columns_by_what_its_nodes_are() -> None:
    drawing = drawn(GRAPH, {"artifact:protocol": "The protocol"}, frozenset({"artifact:protocol"}))
    assert [one.text for one in drawing.headings] == ["Documents", "Points", "Messages"]
    columns = {one.ref: one.x for one in drawing.nodes}
    assert columns["artifact:protocol"] < columns["point:monday/1"] == columns["point:monday/2"]
    assert columns["point:monday/2"] < columns["message:monday/7"]
    assert len({(one.x, one.y) for one in drawing.nodes}) == 4
    assert [one.label for one in drawing.nodes if one.is_in] == ["The protocol"]
    assert len(drawing.edges) == 3
    assert drawing == drawn(GRAPH, {"artifact:protocol": "The protocol"}, frozenset({"artifact:protocol"}))


def test_of_a_large_graph_the_nearest_are_drawn_and_all_are_listed() -> None:
    nodes = [{"ref": f"artifact:{number}", "proximity": 1 / (number + 1)} for number in range(200)]
    edges = [{"from": "artifact:0", "to": f"artifact:{number}", "type": "x", "weight": 1} for number in range(1, 200)]
    drawing = drawn({"nodes": nodes, "edges": edges}, {}, frozenset({"artifact:199"}))
    assert len(drawing.nodes) == MOST
    assert drawing.left_out == 200 - MOST
    assert {"artifact:0", "artifact:199"} <= {one.ref for one in drawing.nodes}  # what the package holds comes first
    assert len(drawing.links) == 199
    assert len(drawing.edges) == MOST - 1


def test_an_empty_graph_and_loose_ends_are_drawn() -> None:
    assert drawn({"nodes": [], "edges": []}, {}, frozenset()).nodes == ()
    loose = {"nodes": [{"ref": "x:1", "proximity": 0}], "edges": [{"from": "x:1", "to": "x:1", "type": "y"}]}
    assert drawn(loose, {}, frozenset()).edges == ()


def test_what_another_budget_changes_is_told_of_each_candidate_once() -> None:
    def receipt(name: str, tokens: int) -> Receipt:
        return Receipt(name, "memory", Outcome.INCLUDED if tokens else Outcome.DROPPED, tokens=tokens)

    before = [receipt("a", 10), receipt("b", 0), receipt("c", 5), receipt("c", 0), receipt("d", 7)]
    after = [receipt("a", 10), receipt("b", 8), receipt("c", 0), receipt("d", 3)]
    assert [(one.receipt.id, one.kind) for one in changes(before, after)] == [("b", "in"), ("c", "out"), ("d", "less")]
    assert changes(after, after) == []


def test_receipts_are_told_by_section_and_only_ranked_ones_have_scores() -> None:
    ranked = Receipt("m", "memory", Outcome.INCLUDED, tokens=5, signals=(Signal("x", 1.0, 0.5),))
    said = Receipt("h", "history", Outcome.INCLUDED, tokens=7)
    groups = grouped([said, ranked, said._replace(id="other", section="other")])
    told = [(one.label, len(one.receipts), one.is_ranked, one.tokens) for one in groups]
    assert told == [("Memories", 1, True, 5), ("Conversation", 1, False, 7), ("Other", 1, False, 7)]


def test_only_memories_in_the_prompt_are_rated() -> None:
    held = Receipt("m", "memory", Outcome.INCLUDED, tokens=5, signals=(Signal("x", 1.0, 0.5),), origins=("words",))
    assert is_rated(held)
    assert not is_rated(held._replace(outcome=Outcome.DROPPED))
    assert not is_rated(held._replace(section="history"))
    assert not is_rated(held._replace(origins=("knowledge", "graph")))


def test_a_search_of_days_reaches_to_the_end_of_the_last_one() -> None:
    query = MemorySearch.read({"since": "2026-03-02", "until": "2026-03-02", "speaker": " Ines "}).query()
    assert query.filter.since is not None
    assert query.filter.until is not None
    assert (query.filter.until - query.filter.since).days == 1
    assert query.filter.speaker == "Ines"


@pytest.mark.parametrize(
    "sent",
    [
        {"since": "yesterday"},
        {"since": "2026-03-02", "until": "2026-03-01"},
        {"q": "x" * 8_001},
        {"speaker": "x" * 501},
    ],
)
def test_a_search_that_cannot_be_used_says_why(sent: dict[str, str]) -> None:
    with pytest.raises(FilterInvalid) as refused:
        MemorySearch.read(sent).query()
    assert problem_of(refused.value).status == 422


@pytest.mark.parametrize("day", ["9999-12-31", "0001-01-01"])
def test_the_last_and_the_first_day_of_the_calendar_are_days(day: str) -> None:
    assert MemorySearch.read({"since": day, "until": day, "most": "99999999999999"}).query().limit <= 301
