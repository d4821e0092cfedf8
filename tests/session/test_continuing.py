"""A session outlives its process, its owner and its Redis."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from context_builder.errors import DatabaseUnavailable, LeaseLost, SessionOwned, StoreError
from context_builder.memory.memory import MemoryFilter, MemoryQuery
from context_builder.session.client import SessionClient
from context_builder.session.keys import Keys
from context_builder.session.store.registry import SessionRegistry
from context_builder.session.store.store import SessionStore
from tests.services.redis_server import RedisServer
from tests.services.waiting import PATIENCE, wait_until
from tests.session.live import TENANT, Live
from tests.session.memories import SlowMemory
from tests.session.saying import advised, spoken

pytestmark = pytest.mark.engines

KEYS = Keys("monday")


# Stopping and starting again


async def test_a_stopped_session_continues_though_its_state_has_expired(live: Live) -> None:
    first = await live.start()
    await live.push(*(spoken(number) for number in (1, 2, 4)), spoken(3), advised())
    before = await live.until("keywords came", received_messages=5, analyst=_by("stub", "stub"))
    await live.stop(first)
    await live.redis.delete(KEYS.state, KEYS.conversation)
    remembered = await SessionClient(live.redis, "monday").remembered()
    await live.start()
    after = await live.state()
    assert [entry["message_number"] for entry in after["raw_recent_buffer"]][:4] == [1, 2, 3, 4]
    changing = {"revision", "updated_at"}
    for state in (remembered, after):
        assert {k: v for k, v in state.items() if k not in changing} == {
            k: v for k, v in before.items() if k not in changing
        }


def _by(keywords: str | None, domains: str | None, summary: str | None = None) -> dict[str, str | None]:
    return {"keywords": keywords, "domains": domains, "summary": summary}


async def test_model_calls_under_way_are_given_up_at_once_and_made_again(live: Live) -> None:
    session = await live.start()
    live.analyst.gate.clear()
    await live.say(1, 2, 3, 4, 5)
    await live.shows(1, 2, 3, 4, 5)
    live.clock.advance(120)
    await wait_until(lambda: live.analyst.summary_calls, "every kind of call is under way")
    await live.stop(session)
    live.analyst.gate.set()
    await live.start()
    await live.until("it is all done", message_count=5, analyst=_by("stub", "stub", "stub"))
    await wait_until(lambda: live.archive.rows, "the summary is archived")
    assert len(live.archive.rows) == 1


async def test_a_stop_gives_the_lease_back(live: Live) -> None:
    await live.stop(await live.start())
    assert not await live.redis.exists(KEYS.owner)


async def test_what_is_pushed_while_nobody_runs_the_session_waits(live: Live) -> None:
    await live.stop(await live.start())
    await live.say(1, 2)
    await live.start()
    await live.shows(1, 2)


async def test_a_process_that_dies_at_any_moment_loses_and_doubles_nothing(live: Live) -> None:
    for number in range(1, 40, 4):
        session = await live.start(takeover=True, buffer_max=5, summary_input=60)
        await live.say(*range(number, number + 4))
        await asyncio.sleep(0.003 * (number % 7))  # another moment each time
        live.die(session)
    await live.start(takeover=True, buffer_max=5, summary_input=60)
    await live.until("all are taken in", received_messages=40)
    live.clock.advance(120)
    await live.until("all are summarized once", message_count=40, covers_messages=[1, 40], messages_since_summary=0)
    await wait_until(lambda: _archived(live) == 40, "all are archived")


def _archived(live: Live) -> int:
    return max((row.message_count for row in live.archive.rows.values()), default=0)


# Ending


async def test_ending_summarizes_archives_and_closes(live: Live) -> None:
    session = await live.start(summary_keep_last=2)
    await live.say(1, 2, 3)
    session.end()
    await live.gone(session)
    state = await live.state()
    assert (state["raw_recent_buffer"], state["rolling_summary"]["message_count"]) == ([], 3)
    assert state["ended_at"] == live.clock.now().wall
    assert _archived(live) == 3
    assert not await live.redis.exists(KEYS.owner)


async def test_what_was_pushed_before_the_end_is_summarized_however_late_it_is_read(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, may_read = SessionStore.next_input, asyncio.Event()

    async def read_late(store: SessionStore, seconds: int) -> bytes | None:
        await may_read.wait()
        return await read(store, seconds)

    monkeypatch.setattr(SessionStore, "next_input", read_late)
    session = await live.start()
    await live.say(1, 2, 3)
    session.end()
    live.clock.advance(1)
    await wait_until(lambda: _silent_for(live, 1), "it commits, knowing that it is to end")
    assert not live.tasks[session].done()
    may_read.set()
    await live.gone(session)
    assert ((await live.state())["rolling_summary"]["message_count"], _archived(live)) == (3, 3)


async def _silent_for(live: Live, seconds: float) -> Any:
    return (await live.conversation_state())["time_since_last_message"] == seconds


async def test_another_process_may_ask_the_owner_to_end(live: Live) -> None:
    session = await live.start()
    await live.say(1)
    assert await SessionRegistry(live.redis).request_end("monday")
    await live.gone(session)
    assert (await live.state())["rolling_summary"]["message_count"] == 1
    assert not await live.redis.exists(KEYS.control)


async def test_a_request_to_end_does_not_end_the_next_run(live: Live) -> None:
    session = await live.start()
    await live.say(1)
    assert await SessionRegistry(live.redis).request_end("monday")
    session.end()  # as the command does when it becomes the owner itself
    await live.gone(session)
    assert not await live.redis.exists(KEYS.control)


async def test_a_session_that_cannot_continue_gives_its_lease_back(live: Live) -> None:
    await live.redis.hset(KEYS.checkpoint, "head", b'{"schema_version": 99}')
    with pytest.raises(StoreError, match="newer version"):
        await live.start()
    assert not await live.redis.exists(KEYS.owner)


async def test_nobody_can_be_asked_when_nobody_runs_the_session(live: Live) -> None:
    assert not await SessionRegistry(live.redis).request_end("monday")


async def test_without_archive_and_memory_the_summary_is_in_redis_and_nothing_waits(live: Live) -> None:
    live.receivers = False
    session = await live.start()
    await live.say(1, 2, 3)
    await live.shows(1, 2, 3)
    session.end()
    await live.gone(session)
    assert (await live.state())["rolling_summary"]["message_count"] == 3
    assert await live.redis.exists(KEYS.outbox, KEYS.memory_outbox) == 0
    await live.start()  # and goes on with it
    assert (await live.state())["rolling_summary"]["message_count"] == 3


async def test_a_session_ends_though_the_archive_is_away_and_the_outbox_keeps_the_summary(live: Live) -> None:
    live.archive.failure = DatabaseUnavailable("the archive is away")
    session = await live.start()
    await live.say(1)
    session.end()
    await live.gone(session)
    assert (session.relays.undelivered, await live.redis.llen(KEYS.outbox)) == (1, 1)
    live.archive.failure = None
    await live.start()
    await wait_until(lambda: live.archive.rows, "the next run delivers it")


# One owner


async def test_a_second_process_waits_and_goes_on_when_the_first_stops(live: Live) -> None:
    first = await live.start()
    await live.say(1)
    await live.shows(1)
    second = live.session()
    with capture_logs() as logs:
        live.serve(second)
        told = await wait_until(lambda: [log for log in logs if log["event"] == "session.waiting"], "it tells")
    assert "is run by process" in told[0]["reason"]
    await live.stop(first)
    await wait_until(second.ready.is_set, "the second is ready")
    await live.say(2)
    await live.shows(1, 2)


async def test_a_waiting_process_can_be_stopped(live: Live) -> None:
    await live.start()
    second = live.session()
    live.serve(second)
    await live.stop(second)


async def test_a_process_that_may_not_wait_is_told_who_runs_the_session(live: Live) -> None:
    await live.start()
    second = live.session()
    live.serve(second, wait=False)
    with pytest.raises(SessionOwned, match=r"session monday is run by process \d+ on "):
        await live.gone(second)


async def test_a_session_that_is_taken_over_ends_and_writes_nothing_any_more(live: Live) -> None:
    first = await live.start()
    second = await live.start(takeover=True)
    with pytest.raises(LeaseLost, match=r"session monday is now run by process \d+ on "):
        await live.gone(first)
    await live.say(1)
    assert (await live.shows(1))["received_messages"] == 1
    assert second.ready.is_set()


async def test_a_forgotten_session_ends_its_owner_and_leaves_nothing(live: Live) -> None:
    session = await live.start()
    await live.say(1)
    await live.shows(1)
    await SessionRegistry(live.redis).forget("monday")
    with pytest.raises(LeaseLost, match="forgotten"):
        await live.gone(session)
    assert await live.redis.keys("*monday*") == []


async def test_an_owner_whose_lease_ran_out_goes_on_if_nobody_came_in_between(live: Live) -> None:
    await live.start()
    await live.redis.delete(KEYS.owner)
    await live.say(1)
    await live.shows(1)


# Redis restarts


@pytest.fixture
async def durable(live: Live) -> Live:
    """Redis writes every command to disk before it answers, until it is started again."""
    await live.redis.config_set("appendfsync", "always")
    return live


@pytest.mark.parametrize("away", [0.2, 7])
async def test_redis_restarting_is_waited_out_and_said_to_be_back(
    durable: Live, redis_server: RedisServer, away: float
) -> None:
    session = await durable.start()
    await durable.say(1)
    await durable.shows(1)
    with capture_logs() as logs:
        redis_server.kill()
        durable.clock.advance(5)  # silence falls, which is to be published
        await wait_until(lambda: session._committer._vain_tries > 1, "it tries in vain")
        durable.clock.advance(away)
        redis_server.start()
        await durable.say(2)
        await wait_until(lambda: _received(durable, 2), "it publishes again")
        back = await wait_until(lambda: [log for log in logs if log["event"] == "redis.back"], "it says so")
    assert [(log["session_id"], log["waited_seconds"]) for log in back] == [("monday", away)]
    assert not durable.tasks[session].done()


async def _received(live: Live, count: int) -> Any:
    return (await live.state()).get("received_messages") == count


async def test_a_session_can_be_stopped_while_redis_is_away(durable: Live, redis_server: RedisServer) -> None:
    session = await durable.start()
    redis_server.kill()
    try:
        await durable.stop(session)
    finally:
        redis_server.start()


async def test_a_session_that_starts_while_redis_is_away_waits_for_it(durable: Live, redis_server: RedisServer) -> None:
    redis_server.kill()
    session = durable.session()
    durable.serve(session)
    await durable.tried_in_vain()
    redis_server.start()
    await wait_until(session.ready.is_set, "the session is ready")


async def test_a_redis_that_lost_its_data_gets_everything_again(live: Live) -> None:
    session = await live.start(buffer_max=3)
    await live.push(spoken(1), spoken(2), advised(number=3))
    await live.shows(1, 2, 3)
    live.clock.advance(120)
    await live.until("it is summarized", message_count=3)
    await live.say(4)
    before = await live.shows(4)
    await live.redis.flushall()
    after = await live.shows(4)
    assert after["rolling_summary"] == before["rolling_summary"]
    await live.say(1, 2, 4, 5)
    assert (await live.shows(4, 5))["received_messages"] == 5
    await live.stop(session)
    await live.redis.delete(KEYS.state)
    await live.start()
    assert len((await live.shows(4, 5))["consilience_responses"]) == 1


async def test_who_says_hello_again_to_a_wiped_redis_said_it_twice(live: Live) -> None:
    session = await live.start()
    await live.push({"text": "Hello"})
    revision = (await live.until("it is heard", received_messages=1))["revision"]
    await wait_until(lambda: session._store.revision >= revision, "the session knows that Redis has it")
    now = live.clock.advance(6).monotonic
    await wait_until(lambda: session._committer._committed_at == now, "a commit finds that Redis still has it")
    await live.redis.flushall()
    await live.push({"text": "Hello"})
    await live.until("it is heard again", received_messages=2)


async def test_every_session_of_a_process_survives_that_redis_lost_its_data(live: Live) -> None:
    names = ("monday", "tuesday", "wednesday")
    for name in names:  # the first to get a token is the last to ask for another
        await live.start(name, tick=0.4 if name == "monday" else 0.05)
        await live.say(1, session_id=name)
        await live.shows(1, session_id=name)
    await live.redis.flushall()
    for name in names:
        await live.shows(1, session_id=name)
    assert not any(task.done() for task in live.tasks.values())


@pytest.mark.parametrize("begun_anew", [False, True])
async def test_what_is_delivered_of_a_forgotten_session_is_taken_back(live: Live, begun_anew: bool) -> None:
    """Its owner stood still in a delivery while it was forgotten; what a new owner has delivered stays."""
    live.memory = memory = SlowMemory()
    memory.supports_message_feed = False
    session = await live.start()
    await live.say(1, 2)
    await live.shows(1, 2)
    session.end()
    await asyncio.wait_for(memory.asked.wait(), PATIENCE)
    await SessionRegistry(live.redis).forget("monday")
    if begun_anew:
        await live.redis.hset(Keys("monday").checkpoint, "revision", 1)  # type: ignore[misc]
    memory.may.set()
    with pytest.raises(LeaseLost, match=r"forgotten|continued"):
        await live.gone(session)
    kept = await memory.search(TENANT, MemoryQuery("", 10, filter=MemoryFilter(session_id="monday")))
    assert bool(kept) is begun_anew
