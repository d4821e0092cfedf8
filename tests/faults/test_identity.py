"""A message that was taken in once is recognized for as long as the session is kept; one that is late is not lost."""

from __future__ import annotations

import pytest

from tests.session.live import Live
from tests.session.saying import at, spoken

pytestmark = pytest.mark.engines

HOURS = 6 * 3600.0


async def test_all_sent_again_hours_later_after_summaries_and_a_restart_changes_nothing(live: Live) -> None:
    session = await live.start()
    await live.say(*range(1, 21))
    await live.shows(*range(1, 21))
    live.clock.advance(121)
    await live.until("all is summarized", message_count=20)
    await live.stop(session)
    live.clock.advance(HOURS)
    await live.start()
    await live.say(*range(1, 21))
    await live.say(21)
    state = await live.shows(21)
    assert state["received_messages"] == 21
    assert state["rolling_summary"]["message_count"] == 20


async def test_one_number_with_other_content_is_another_message(live: Live) -> None:
    await live.start()
    await live.say(1, 2)
    await live.push(spoken(1, "Said after the recorder began to count anew", timestamp=at(3)))
    assert (await live.shows(1, 2, 1))["received_messages"] == 3


async def test_the_same_word_again_without_number_and_timestamp_is_another_message(live: Live) -> None:
    await live.start()
    yes = {"text": "Yes.", "speaker": "Alice"}
    await live.push(yes)
    await live.shows(None)
    live.clock.advance(60)
    await live.push(yes, yes)
    assert (await live.shows(None, None, None))["received_messages"] == 3


async def test_a_message_that_is_late_by_a_summary_goes_into_the_next(live: Live) -> None:
    await live.start()
    await live.say(1, 2, 4, 5)
    await live.shows(1, 2, 4, 5)
    live.clock.advance(121)
    await live.until("four are summarized", message_count=4)
    await live.say(3)
    await live.shows(3)
    live.clock.advance(121)
    state = await live.until("the late one is summarized", message_count=5)
    assert state["rolling_summary"]["covers_messages"] == [1, 5]
    assert sorted(number for point in state["rolling_summary"]["points"] for number in point["messages"]) == [
        1,
        2,
        3,
        4,
        5,
    ]
