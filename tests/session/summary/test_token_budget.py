"""The budget of a summary grows with the talk."""

from __future__ import annotations

import pytest

from context_builder.session.summary.token_budget import TokenBudget

DAY = 24 * 3600.0


@pytest.mark.parametrize(
    ("an_hour", "talk", "tokens"),
    [
        (1000, 0.0, 1000),
        (1000, 1800.0, 1000),
        (1000, 3600.0, 1500),
        (1000, 5400.0, 2000),
        (1000, 3 * DAY, 2000),
        (1000, -DAY, 1000),
        (0, 3 * DAY, 1000),
    ],
)
def test_it_grows_after_half_an_hour_and_at_most_to_twice_what_it_was(an_hour: int, talk: float, tokens: int) -> None:
    assert TokenBudget(1000, an_hour).after(talk) == tokens
