"""What a memory is worth."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.select import (
    RankingQuery,
    deduplicate,
    ranked,
    ranking_signals,
    recency,
    score_candidates,
)

NOW = datetime(2025, 12, 10, tzinfo=UTC)


def scored(candidate: Candidate) -> Candidate:
    (scored,) = score_candidates([candidate], RankingQuery("", NOW), ranking_signals(AssemblyConfig()))
    return scored


def of_age(days: float, base_score: float) -> Candidate:
    return Candidate(
        "m", "text", base_score=base_score, metadata={"timestamp": (NOW - timedelta(days=days)).isoformat()}
    )


@pytest.mark.parametrize(
    ("base", "days", "score"), [(0.95, 1, 0.96), (0.90, 60, 0.67), (0.60, 2, 0.70), (0.55, 90, 0.40)]
)
def test_scores_are_those_of_the_documented_table(base, days, score):
    assert scored(of_age(days, base)).score == pytest.approx(score, abs=0.0051)


@pytest.mark.parametrize(("days", "boost"), [(0, 1.0), (1, 0.967), (7, 0.792), (14, 0.627), (30, 0.368), (60, 0.135)])
def test_recency_falls_to_a_third_in_thirty_days(days, boost):
    assert recency({"created_at": NOW - timedelta(days=days)}, NOW) == pytest.approx(boost, abs=0.0005)


@pytest.mark.parametrize(
    "metadata", [{}, {"timestamp": None}, {"timestamp": "yesterday"}, {"timestamp": []}, {"timestamp": 1e30}]
)
def test_without_a_readable_time_recency_is_a_half(metadata):
    assert recency(metadata, NOW) == 0.5


def test_a_time_may_have_any_offset_and_the_future_counts_as_now():
    east = datetime(2025, 12, 9, 5, tzinfo=timezone(timedelta(hours=5)))
    assert recency({"timestamp": east.isoformat()}, NOW) == recency({"timestamp": "2025-12-09T00:00:00Z"}, NOW)
    assert recency({"timestamp": "2026-12-09T00:00:00Z"}, NOW) == 1.0


@pytest.mark.parametrize(("given", "taken"), [(7.0, 1.0), (-0.5, 0.0), (float("nan"), 0.0), (0.4, 0.4)])
def test_similarity_is_between_nothing_and_all(given, taken):
    one = scored(Candidate("m", "text", base_score=given))
    assert (one.signal("similarity"), one.score) == (taken, pytest.approx(0.7 * taken + 0.3 * 0.5))


def test_equals_keep_their_order():
    same = [Candidate(name, name, score=0.5) for name in "abc"]
    assert [one.id for one in ranked(same)] == ["a", "b", "c"]


def test_the_same_memory_from_two_sources_is_one():
    one = Candidate("a", "The cell divides.", base_score=0.3, origins=("text",))
    again = Candidate("b", "the cell divides. ", base_score=0.8, origins=("dense",))
    kept, others = deduplicate([one, again])
    assert [(found.id, found.base_score, found.origins) for found in kept] == [("b", 0.8, ("text", "dense"))]
    assert [found.id for found in others] == ["a"]
