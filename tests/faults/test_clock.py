"""The wall clock jumps an hour: silence, summaries and ages go by the clock that cannot."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from tests.services.waiting import wait_until
from tests.session.live import Live

pytestmark = pytest.mark.engines

HOUR = 3600.0

either_way = pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["forward", "back"])


@either_way
async def test_nobody_falls_silent_because_the_clock_was_set(live: Live, jump: float) -> None:
    await live.start()
    await live.say(1)
    await live.shows(1)
    live.clock.set_wall(jump)
    before = await live.conversation_state()
    await wait_until(_refreshed(live), "a tick after the jump")
    after = await live.conversation_state()
    assert (before["silence"], after["silence"]) == (False, False)
    assert after["time_since_last_message"] < 1


@either_way
async def test_silence_still_begins_when_nobody_speaks(live: Live, jump: float) -> None:
    await live.start()
    await live.say(1)
    await live.shows(1)
    live.clock.set_wall(jump)
    live.clock.advance(4.1)
    await wait_until(lambda: _is_silent(live), "silence begins")


@either_way
async def test_a_summary_comes_when_it_is_due_neither_sooner_nor_later(live: Live, jump: float) -> None:
    await live.start()
    await live.say(1)
    await live.shows(1)
    live.clock.set_wall(jump)
    live.clock.advance(115)
    await live.say(2)
    await live.shows(1, 2)
    live.clock.advance(6)
    await live.until("both are summarized", message_count=2)


@either_way
async def test_a_session_that_is_continued_after_the_jump_still_summarizes(live: Live, jump: float) -> None:
    session = await live.start()
    await live.say(1)
    await live.shows(1)
    await live.stop(session)
    live.clock.set_wall(jump)
    await live.start()
    live.clock.advance(121)
    state = await live.until("it is summarized", message_count=1)
    assert state["received_messages"] == 1


def _refreshed(live: Live) -> Callable[[], Awaitable[bool]]:
    """True once the silence clock has been written since the first call."""
    seen: list[int] = []

    async def refreshed() -> bool:
        seen.append(await live.redis.pttl("conversation_state:monday"))
        return any(later > earlier for earlier, later in pairwise(seen))

    return refreshed


async def _is_silent(live: Live) -> bool:
    return bool((await live.conversation_state())["silence"])
