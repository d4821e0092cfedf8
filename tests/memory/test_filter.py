"""What filters memories is read from what people write, and what cannot be used is named."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from context_builder.errors import FilterInvalid
from context_builder.memory.filter import memory_filter
from context_builder.memory.memory import is_by_meaning_alone


def test_days_and_moments_are_in_utc_and_the_last_day_is_searched_too() -> None:
    found = memory_filter(speaker="Ann", since="2026-03-02T01:00:00+01:00", until="2026-03-02")
    assert (found.speaker, found.session_id) == ("Ann", None)
    assert (found.since, found.until) == (datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 3, 3, tzinfo=UTC))


def test_the_last_day_of_a_leap_year_s_february_is_a_day_in_any_year() -> None:
    assert memory_filter(until="9996-02-29").until == datetime(
        8000, 3, 1, tzinfo=UTC
    )  # as late as can be computed with


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"since": "soon"}, "since must be a date or a time"),
        ({"since": "2026-03-02", "until": "2026-03-01"}, "the first day is after the last one"),
        ({"kinds": ["k" * 501]}, "kind is longer than 500 characters"),
        ({"tags": ["t" * 501]}, "tag is longer than 500 characters"),
    ],
)
def test_what_cannot_be_used_is_named(given: dict[str, object], told: str) -> None:
    with pytest.raises(FilterInvalid, match=told):
        memory_filter(**given)  # type: ignore[arg-type]


def test_what_nobody_said_is_found_by_meaning_alone() -> None:
    assert is_by_meaning_alone([("vector",), ("neighbour",)])
    assert not is_by_meaning_alone([("vector",), ("full_text", "vector")])
    assert not is_by_meaning_alone([("somabrain",)])
    assert not is_by_meaning_alone([])
