"""A busy process gathers for a moment what arrives; one with time passes it on at once."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis

from context_builder.session.arrivals import GATHER_SECONDS, Arrivals, Gathering
from tests.services.waiting import wait_until


@pytest.mark.parametrize(("busy", "seconds"), [(0, 0), (0.6, 0), (0.8, GATHER_SECONDS / 2), (1, GATHER_SECONDS)])
def test_the_busier_the_thread_the_longer_is_gathered(busy: float, seconds: float) -> None:
    now = 100.0
    gathering = Gathering(lambda: now, lambda: busy * now)
    assert gathering.seconds() == 0.0
    now += 0.2
    assert gathering.seconds() == pytest.approx(seconds)


def test_it_ends_when_the_thread_has_time_again() -> None:
    now, used = 100.0, 50.0
    gathering = Gathering(lambda: now, lambda: used)
    now, used = 101.0, 51.0
    assert gathering.seconds() == GATHER_SECONDS
    now = 102.0
    assert gathering.seconds() == 0.0


class Busy(Gathering):
    def seconds(self) -> float:
        return 0.02


async def test_what_is_gathered_is_passed_on_together_each_list_once() -> None:
    here, elsewhere = [], []
    arrivals = Arrivals(Redis(), lambda: (), lambda name: name != "foreign" and not here.append(name))
    arrivals.elsewhere = elsewhere.append
    arrivals._hear("a")
    assert here == ["a"]
    arrivals._gathering = Busy()
    for name in ("a", "b", "foreign", "a"):
        arrivals._hear(name)
    assert (here, elsewhere) == (["a"], [])
    await wait_until(lambda: len(elsewhere) == 1, "what was gathered is passed on")
    assert (here, elsewhere) == (["a", "a", "b"], ["foreign"])
    arrivals._hear("b")
    await wait_until(lambda: len(here) == 4, "what came afterwards is passed on, too")
    assert (here[3:], elsewhere) == (["b"], ["foreign"])
