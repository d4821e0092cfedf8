"""What keeps failing is left alone, tried once, and trusted again when it answers."""

from __future__ import annotations

import asyncio

import pytest

from context_builder.breaker import BreakerState, CallGuard, CircuitBreaker, guard_calls_to
from context_builder.errors import DatabaseRejected, DatabaseUnavailable
from context_builder.testing import ManualClock


class Down(Exception):
    pass


class LeftAlone(Exception):
    pass


@pytest.fixture
def breaker() -> CircuitBreaker:
    return CircuitBreaker(failures=3, pause=15.0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def calls(breaker: CircuitBreaker, clock: ManualClock) -> CallGuard:
    def is_answer(error: BaseException) -> bool | None:
        return False if isinstance(error, Down) else None

    return CallGuard(breaker, is_answer=is_answer, refusal=LeftAlone, monotonic=lambda: clock.now().monotonic)


def fail(calls: CallGuard, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(Down), calls.guard():
            raise Down


def succeed(calls: CallGuard) -> None:
    with calls.guard():
        pass


def test_three_failures_in_a_row_open_it(breaker: CircuitBreaker) -> None:
    states = [breaker.failed(float(now)) and breaker.state(now) for now in range(3)]
    assert states == [BreakerState.CLOSED, BreakerState.CLOSED, BreakerState.OPEN]


def test_a_success_between_failures_keeps_it_closed(calls: CallGuard) -> None:
    fail(calls, 2)
    succeed(calls)
    fail(calls, 2)
    assert not calls.refuses


def test_open_it_refuses_and_says_for_how_long(calls: CallGuard, clock: ManualClock) -> None:
    fail(calls, 3)
    clock.advance(5.0)
    assert calls.refuses
    with pytest.raises(LeftAlone) as raised, calls.guard():
        pytest.fail("let through")
    assert raised.value.args == (10.0,)


def test_after_the_pause_one_trial_is_let_through_and_closes_it(calls: CallGuard, clock: ManualClock) -> None:
    fail(calls, 3)
    clock.advance(15.0)
    with calls.guard(), pytest.raises(LeftAlone), calls.guard():
        pytest.fail("let a second one through")
    fail(calls, 2)
    assert not calls.refuses


def test_a_failed_trial_opens_it_again(calls: CallGuard, clock: ManualClock) -> None:
    fail(calls, 3)
    clock.advance(15.0)
    fail(calls)
    clock.advance(14.9)
    assert calls.refuses
    clock.advance(0.1)
    succeed(calls)
    fail(calls, 2)
    assert not calls.refuses


def test_a_cancelled_trial_leaves_room_for_the_next(
    calls: CallGuard, breaker: CircuitBreaker, clock: ManualClock
) -> None:
    fail(calls, 3)
    clock.advance(15.0)
    with pytest.raises(asyncio.CancelledError), calls.guard():
        raise asyncio.CancelledError
    assert breaker.state(clock.now().monotonic) is BreakerState.HALF_OPEN
    succeed(calls)
    assert breaker.state(clock.now().monotonic) is BreakerState.CLOSED


def test_calls_that_fail_together_are_one_failure(breaker: CircuitBreaker) -> None:
    assert [breaker.failed(1.0 + n / 100, began=0.9) for n in range(100)] == [True, *[False] * 99]
    assert breaker.state(2.0) is BreakerState.CLOSED


def test_what_was_under_way_when_it_opened_changes_nothing(breaker: CircuitBreaker) -> None:
    for now in range(3):
        breaker.failed(float(now))
    breaker.succeeded(3.0)
    assert not breaker.failed(4.0, began=3.0)
    assert breaker.wait(4.0) == 13.0
    assert breaker.admit(17.0)
    assert not breaker.failed(18.0, began=1.0), "the failure of a call from before the pause is not the trial's"
    breaker.abandoned(1.0)
    assert not breaker.admits(18.0), "the trial is still under way"


def test_a_memory_that_refuses_has_answered_and_one_that_is_cut_off_has_not(clock: ManualClock) -> None:
    calls = guard_calls_to("it", monotonic=lambda: clock.now().monotonic)
    for error in [DatabaseRejected, *[TimeoutError] * 2, DatabaseRejected, *[asyncio.CancelledError] * 3]:
        assert not calls.refuses
        with pytest.raises(error), calls.guard():
            raise error
    with pytest.raises(DatabaseUnavailable, match="it keeps failing and is left alone for another 15 s"), calls.guard():
        pytest.fail("let through")
