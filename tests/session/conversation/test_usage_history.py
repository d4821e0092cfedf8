"""What is spent is counted by minute, and by longer steps the longer it goes on."""

from __future__ import annotations

import pytest

from context_builder.session.conversation.usage_history import MOST_STEPS, STEPS, StepUsage, UsageHistory

NOON = 1_795_780_800
DAY = 86_400


def history(*spent: tuple[float, int, float]) -> UsageHistory:
    counted = UsageHistory()
    for one in spent:
        counted.add(*one)
    return counted


def test_each_minute_has_its_own_sum() -> None:
    counted = history((NOON + 61.5, 10, 0.1), (NOON + 3, 1, 0.0), (NOON + 119, 5, 0.2), (NOON + 300, 0, 0.0))
    assert counted.seconds == 60
    assert [(one.begin - NOON, one.tokens) for one in counted] == [(0, 1), (60, 15)]
    assert [one.dollars for one in counted] == pytest.approx([0.0, 0.3])


def test_nothing_is_lost_where_steps_become_longer() -> None:
    counted = history(*((NOON + 60 * minute, 2, 0.5) for minute in range(MOST_STEPS + 1)))
    assert counted.seconds == 300
    assert sum(one.tokens for one in counted) == 2 * (MOST_STEPS + 1)
    assert sum(one.dollars for one in counted) == pytest.approx(0.5 * (MOST_STEPS + 1))


def test_of_months_the_newest_days_are_kept() -> None:
    counted = history(*((NOON + DAY * day, 1, 0.0) for day in range(90)))
    assert counted.seconds == DAY
    assert next(one.begin for one in counted) == NOON - NOON % DAY + DAY * (90 - MOST_STEPS)
    assert len(list(counted)) == MOST_STEPS


def test_a_clock_that_goes_back_loses_nothing() -> None:
    counted = history((NOON + 600, 1, 0.0), (NOON, 2, 0.0))
    assert [(one.begin - NOON, one.tokens) for one in counted] == [(0, 2), (600, 1)]


def test_a_clock_that_was_years_ahead_for_once_loses_nothing() -> None:
    spent = [(NOON + 60 * minute, 1, 0.1) for minute in range(5)]
    counted = history(*spent, (NOON + 1100 * DAY, 10, 0.1), *((at + 600, tokens, cost) for at, tokens, cost in spent))
    assert [one.tokens for one in counted] == [10, 10]
    assert sum(one.dollars for one in counted) == pytest.approx(1.1)


def test_histories_of_several_sessions_are_one() -> None:
    long, short = history((NOON, 1, 0.1), (NOON + 20 * 3600, 2, 0.2)), history((NOON + 90, 4, 0.4))
    counted = UsageHistory()
    for one in (short, long):
        counted.absorb(one)
    assert counted.seconds == 3600
    assert [(one.begin - NOON, one.tokens) for one in counted] == [(0, 5), (72_000, 2)]


def test_what_is_written_is_read_again_and_may_be_missing() -> None:
    counted, again = history((NOON, 1, 0.1), (NOON + 9000, 2, 0.2)), UsageHistory()
    again.restore(counted.wire())
    assert (again.seconds, list(again)) == (counted.seconds, list(counted))
    again.restore({})
    assert (again.seconds, list(again)) == (STEPS[0], [])
    assert list(history((NOON, 1, 0.25))) == [StepUsage(NOON, 1, 0.25)]


@pytest.mark.parametrize(
    "written",
    [
        None,
        [],
        "steps",
        {"seconds": 604_800, "steps": [[NOON, 1, 0.1]]},
        {"seconds": 0, "steps": [[NOON, 1, 0.1]]},
        {"seconds": "60", "steps": [[NOON, 1, 0.1]]},
        {"seconds": 60, "steps": None},
        {"seconds": 60, "steps": [[NOON, 1]]},
        {"seconds": 60, "steps": [[NOON, 1, 0.1, 2]]},
        {"seconds": 60, "steps": [[NOON, -1, 0.1]]},
        {"seconds": 60, "steps": [[NOON, 1, float("nan")]]},
        {"seconds": 60, "steps": [[NOON, 1, "0.1"]]},
        {"seconds": 60, "steps": [[10**30, 1, 0.1]]},
        {"seconds": 60, "steps": [{"begin": NOON}]},
        {"seconds": 60, "steps": [[NOON, 1, 0.1]] * (MOST_STEPS + 1)},
    ],
)
def test_what_has_another_form_is_no_history(written: object) -> None:
    counted = history((NOON, 1, 0.1))
    counted.restore(written)
    assert (counted.seconds, list(counted)) == (STEPS[0], [])
