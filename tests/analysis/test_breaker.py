"""A model that keeps failing is left alone, tried once, and trusted again when it answers."""

from __future__ import annotations

import asyncio

import pytest

from context_builder.analysis.breaker import Breaker, BreakerOpen
from context_builder.errors import AnalystError, AnalystUnavailable, ReplyInvalid


class Hand:
    """A clock moved by hand; seconds."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def breaker(clock: Hand) -> Breaker:
    return Breaker(failures=3, pause=15.0, now=clock)


def fail(breaker: Breaker, times: int = 1, error: type[AnalystError] = AnalystUnavailable) -> None:
    for _ in range(times):
        with pytest.raises(error), breaker.guard():
            raise error("down")


def succeed(breaker: Breaker) -> None:
    with breaker.guard():
        pass


def test_three_failures_in_a_row_open_it(breaker: Breaker) -> None:
    fail(breaker, 2)
    assert not breaker.is_open
    fail(breaker, 1, ReplyInvalid)
    assert breaker.is_open


def test_a_success_between_failures_keeps_it_closed(breaker: Breaker) -> None:
    fail(breaker, 2)
    succeed(breaker)
    fail(breaker, 2)
    assert not breaker.is_open


def test_open_it_refuses_and_says_for_how_long(breaker: Breaker, clock: Hand) -> None:
    fail(breaker, 3)
    clock.seconds = 5.0
    with pytest.raises(BreakerOpen) as raised, breaker.guard():
        pytest.fail("let through")
    assert raised.value.retry_after == 10.0


def test_after_the_pause_one_trial_is_let_through_and_closes_it(breaker: Breaker, clock: Hand) -> None:
    fail(breaker, 3)
    clock.seconds = 15.0
    with breaker.guard(), pytest.raises(BreakerOpen), breaker.guard():
        pytest.fail("let a second one through")
    assert not breaker.is_open
    fail(breaker, 2)
    assert not breaker.is_open


def test_a_failed_trial_opens_it_again(breaker: Breaker, clock: Hand) -> None:
    fail(breaker, 3)
    clock.seconds = 15.0
    fail(breaker)
    clock.seconds = 29.9
    fail(breaker, 1, BreakerOpen)
    clock.seconds = 30.0
    succeed(breaker)
    assert not breaker.is_open


def test_a_cancelled_trial_leaves_room_for_the_next(breaker: Breaker, clock: Hand) -> None:
    fail(breaker, 3)
    clock.seconds = 15.0
    with pytest.raises(asyncio.CancelledError), breaker.guard():
        raise asyncio.CancelledError
    assert breaker.is_open
    succeed(breaker)
    assert not breaker.is_open
