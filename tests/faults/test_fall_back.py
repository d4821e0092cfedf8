"""Power fails under a Redis that writes to disk every second: it comes back without its last moments."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from context_builder.session.keys import Keys
from context_builder.session.store import store
from context_builder.session.store.recovery import SECONDS
from context_builder.storage.redis import client_for
from scripts.campaign.audit import Places
from tests.faults.forgetful import ForgetfulRedis
from tests.services.waiting import PATIENCE, wait_until
from tests.session.live import Live
from tests.session.saying import spoken

pytestmark = pytest.mark.engines

KEYS = Keys("monday")


@pytest.fixture
async def live(forgetful: ForgetfulRedis, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Live]:
    monkeypatch.setattr(store, "RELEASE_TIMEOUT", PATIENCE)  # a busy machine is not to be taken for a Redis that stalls
    forgetful.server.start()
    url = forgetful.server.url
    patient = Redis.from_url(url, retry=Retry(NoBackoff(), 3))
    async with client_for(url) as client, patient:
        live = Live(client, patient)
        live.analyst.gate.clear()  # what is pending stays pending until a test lets it go
        yield live
        for session in list(live.tasks):
            await live.stop(session)
    forgetful.server.kill()


async def say(live: Live, *numbers: int) -> None:
    """Messages that the audit finds again."""
    await live.push(*(spoken(number, f"m{number:06} was said") for number in numbers))


async def places(live: Live) -> Counter[str]:
    """How often each message is anywhere."""
    return (await Places.read(live.redis, "monday")).taken_in


async def test_messages_that_had_just_become_pending_are_pending_again(live: Live, forgetful: ForgetfulRedis) -> None:
    await live.start(buffer_max=2)
    await say(live, 1, 2, 3)
    await live.until("three are taken in", received_messages=3)
    forgetful.remember()
    await say(live, 4, 5, 6)
    await live.until("six are taken in", received_messages=6)
    for number in (7, 8):
        forgetful.fall_back()
        await say(live, number)
        await live.until("the next is taken in", received_messages=number, pending_messages=number - 2)
        assert await places(live) == Counter(f"m{each:06}" for each in range(1, number + 1))


async def test_though_nobody_speaks_it_is_noticed_at_once(live: Live, forgetful: ForgetfulRedis) -> None:
    await live.start()
    forgetful.remember()
    await say(live, 1)
    await live.shows(1)
    live.analyst.gate.set()
    await live.until("there is nothing left to do", analyst={"keywords": "stub", "domains": None, "summary": None})
    forgetful.fall_back()
    await live.shows(1)


async def test_messages_that_had_just_been_summarized_are_not_pending_again(
    live: Live, forgetful: ForgetfulRedis
) -> None:
    session = await live.start(buffer_max=2)
    await say(live, 1, 2, 3, 4, 5)
    await live.until("five are taken in", received_messages=5)
    forgetful.remember()
    live.analyst.gate.set()
    await live.until("the pending ones are summarized", message_count=5)
    forgetful.fall_back()
    await say(live, 6)
    await live.until("the sixth is taken in", received_messages=6, pending_messages=0)
    assert await live.redis.llen(KEYS.pending) == 0
    await live.stop(session)
    await wait_until(lambda: live.archive.rows, "the summary is archived")


async def test_a_message_that_comes_again_from_a_redis_that_fell_back_is_known(
    live: Live, forgetful: ForgetfulRedis
) -> None:
    session = live.session()
    await say(live, *range(1, 21))
    forgetful.remember()
    live.serve(session)
    await live.until("all are taken in", received_messages=20)
    forgetful.fall_back()
    await wait_until(lambda: live.lacks(KEYS.input), "they are acknowledged again")
    await live.stop(session)
    await live.start()  # which remembers nothing itself
    await say(live, *range(1, 22))
    state = await live.shows(*range(1, 22))
    assert state["received_messages"] == 21


async def test_a_redis_that_lost_more_than_is_remembered_loses_no_pending_message_that_is(
    live: Live, forgetful: ForgetfulRedis
) -> None:
    forgetful.remember()
    await live.start(buffer_max=2)
    await say(live, 1, 2, 3)
    await live.until("three are taken in", received_messages=3)
    live.clock.advance(SECONDS + 1)
    await say(live, 4, 5)
    await live.until("five are taken in", received_messages=5)
    forgetful.fall_back()
    await say(live, 6)
    await live.until("the sixth is taken in", received_messages=6)
    assert {f"m{number:06}" for number in (2, 3, 4, 5, 6)} <= set(await places(live))


async def test_a_session_that_is_handed_over_waits_for_redis_and_restores_what_that_lost(
    live: Live, forgetful: ForgetfulRedis
) -> None:
    session = await live.start()
    await say(live, 1)
    await live.until("one is taken in", received_messages=1)
    forgetful.remember()
    await say(live, 2)
    await live.until("two are taken in", received_messages=2)
    forgetful.server.kill()
    session.hand_over()
    await live.tried_in_vain()
    assert not live.tasks[session].done()
    forgetful.fall_back()
    await live.tasks[session]
    assert await places(live) == Counter({"m000001": 1, "m000002": 1})
    assert not await live.redis.exists(KEYS.owner)


async def test_a_session_that_nobody_gave_it_yet_is_handed_over_at_once(live: Live) -> None:
    await live.start()
    waiting = live.session()
    leaving = live.serve(waiting)
    waiting.hand_over()
    await leaving
    assert not waiting.ready.is_set()
