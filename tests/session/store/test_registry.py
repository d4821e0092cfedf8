"""All sessions of a Redis: listing them, sweeping the outlived ones, forgetting one."""

from __future__ import annotations

import time

import pytest
from structlog.testing import capture_logs

from context_builder.cli.forget import why_late
from context_builder.errors import DataRejected, LeaseLost
from context_builder.session.client import Ended, SessionClient
from context_builder.session.keys import FENCE, FORGOTTEN, SESSIONS, SUMMARY_SEQS, Keys
from context_builder.session.store.registry import LOOKED_AT_ONCE, SessionRegistry
from tests.services.waiting import PATIENCE, wait_until
from tests.session.live import Live
from tests.session.saying import spoken

pytestmark = pytest.mark.engines

KEYS = Keys("monday")
LATER = time.time() + 8 * 86_400


@pytest.fixture
def catalog(live: Live) -> SessionRegistry:
    return SessionRegistry(live.redis)


async def ended(live: Live, session_id: str = "monday") -> None:
    """A session that was summarized, archived and closed."""
    session = await live.start(session_id)
    await live.say(1, session_id=session_id)
    session.end()
    await live.gone(session)


async def test_sessions_are_listed_with_what_they_are_up_to(live: Live, catalog: SessionRegistry) -> None:
    await ended(live, "closed")
    live.clock.advance(10)
    stored = await live.start("stored")
    await live.push(*(spoken(number) for number in (1, 2, 3)), session_id="stored")
    await live.shows(1, 2, 3, session_id="stored")
    await live.stop(stored)
    live.clock.advance(10)
    await live.start("running")
    await live.say(1, session_id="running")
    await live.shows(1, session_id="running")
    await live.say(1, 2, session_id="never-run")
    listed = await catalog.sessions()
    assert [(each.session_id, each.status) for each in listed] == [
        ("never-run", "new"),
        ("running", "running"),
        ("stored", "stored"),
        ("closed", "ended"),
    ]
    assert [(each.messages, each.waiting) for each in listed] == [(0, 2), (1, 0), (3, 0), (1, 0)]
    assert listed[1].as_json()["owner"]["token"] > 0


async def test_one_session_is_found_as_it_would_be_listed(live: Live, catalog: SessionRegistry) -> None:
    await ended(live)
    await live.say(1, session_id="never-run")
    assert {each.session_id: each for each in await catalog.sessions()} == {
        name: await catalog.find(name) for name in ("monday", "never-run")
    }


async def test_a_session_of_which_nothing_is_left_is_not_found(live: Live, catalog: SessionRegistry) -> None:
    assert await catalog.find("monday") is None
    await live.redis.set(KEYS.owner, b'{"token": 1, "pid": 1, "host": "elsewhere"}')
    assert await catalog.find("monday")
    await catalog.forget("monday")
    assert await live.redis.exists(KEYS.owner)
    assert await catalog.find("monday") is None


async def test_that_a_session_has_ended_is_known_also_when_its_state_has_expired(live: Live) -> None:
    await ended(live)
    client = SessionClient(live.redis, "monday")
    assert (await client.snapshot()).ended == Ended(live.clock.now().wall, messages=1, summaries=1, undelivered=0)
    await live.redis.delete(KEYS.state)
    await live.redis.lpush(KEYS.outbox, b"{}")
    assert (await client.snapshot()).ended == Ended(live.clock.now().wall, messages=1, summaries=1, undelivered=1)
    assert await SessionClient(live.redis, "never-run").ended() is None


async def test_keys_that_only_look_like_a_session_are_left_out(live: Live, catalog: SessionRegistry) -> None:
    await live.redis.lpush("context_builder:with space:input", b"x")
    await live.redis.lpush("context_builder::input", b"x")
    assert await catalog.sessions() == []
    await live.redis.delete("context_builder:with space:input", "context_builder::input")


async def test_an_outlived_session_is_swept_whole(live: Live, catalog: SessionRegistry) -> None:
    await ended(live)
    assert await catalog.sweep(1.0) == []
    assert await catalog.sweep(LATER) == ["monday"]
    assert set(await live.redis.keys()) == {FENCE.encode(), SUMMARY_SEQS.encode()}


async def test_the_session_that_is_being_started_is_not_swept(live: Live, catalog: SessionRegistry) -> None:
    await ended(live, "monday")
    await ended(live, "tuesday")
    assert await catalog.sweep(LATER, spared="monday") == ["tuesday"]


@pytest.mark.parametrize("key", [KEYS.input, KEYS.pending, KEYS.outbox, KEYS.memory_outbox])
async def test_a_session_in_which_something_waits_is_never_swept(
    live: Live, catalog: SessionRegistry, key: str
) -> None:
    await ended(live)
    await live.redis.lpush(key, b"waiting")
    assert await catalog.sweep(LATER) == []
    assert await live.redis.exists(KEYS.checkpoint)


async def test_a_session_with_messages_in_its_buffer_is_never_swept(live: Live, catalog: SessionRegistry) -> None:
    session = await live.start()
    await live.say(1)
    await live.shows(1)
    await live.stop(session)
    assert await catalog.sweep(LATER) == []


async def test_a_session_that_somebody_runs_is_never_swept(live: Live, catalog: SessionRegistry) -> None:
    await live.start()
    await live.say(1)
    await live.shows(1)
    live.clock.advance(121)
    await live.until("nothing waits", message_count=1)
    await wait_until(lambda: live.lacks(KEYS.outbox), "not even a summary")
    assert await catalog.sweep(LATER) == []


async def test_a_session_that_comes_to_life_during_the_sweep_stays(
    live: Live, catalog: SessionRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ended(live)
    _outlived(live, monkeypatch, b"monday")
    assert await catalog.sweep(1.0) == []
    assert await live.redis.exists(KEYS.checkpoint)


async def test_two_may_sweep_at_once(live: Live, catalog: SessionRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    await ended(live)
    _outlived(live, monkeypatch, b"monday", b"monday")
    assert "monday" in await catalog.sweep(LATER)
    assert set(await live.redis.keys()) == {FENCE.encode(), SUMMARY_SEQS.encode()}


def _outlived(live: Live, monkeypatch: pytest.MonkeyPatch, *names: bytes) -> None:
    """These are found, whatever has become of them since."""

    async def zrange(*_: object, **__: object) -> list[bytes]:
        return [*names]

    monkeypatch.setattr(live.redis, "zrange", zrange)


async def test_a_swept_session_begins_anew(live: Live, catalog: SessionRegistry) -> None:
    await ended(live)
    await catalog.sweep(LATER)
    await live.start()
    await live.say(1)
    assert (await live.shows(1))["received_messages"] == 1


async def test_a_swept_session_goes_on_counting_its_summaries(live: Live, catalog: SessionRegistry) -> None:
    await ended(live)
    await catalog.sweep(LATER)
    begun = await live.start()
    await live.say(1)
    await live.shows(1)
    await live.stop(begun)  # before its next summary
    await ended(live)
    assert [seq for _, seq in live.archive.rows] == [1, 2]
    await catalog.forget("monday")
    assert not await live.redis.exists(SUMMARY_SEQS)


async def test_forgetting_leaves_nothing(live: Live, catalog: SessionRegistry) -> None:
    await ended(live)
    await live.redis.lpush(KEYS.input, b"waiting")
    assert await catalog.forget("monday") >= 5
    assert set(await live.redis.keys()) == {FENCE.encode(), FORGOTTEN.encode()}
    assert b"monday" not in b"".join(await live.redis.hgetall(FORGOTTEN))
    assert not await live.redis.zscore(SESSIONS, "monday")


async def test_forgetting_under_an_owner_leaves_a_tombstone_that_passes_and_stops_nobody_new(
    live: Live, catalog: SessionRegistry
) -> None:
    await live.redis.set(KEYS.owner, b'{"token": 1, "pid": 1, "host": "elsewhere"}')
    await catalog.forget("monday")
    assert 0 < await live.redis.pttl(KEYS.owner) <= 60_000
    await live.start()


async def test_an_owner_that_learns_that_its_session_was_forgotten_is_seen_to_have_left(
    live: Live, catalog: SessionRegistry
) -> None:
    session = await live.start()
    await live.say(1)
    await live.shows(1)
    await catalog.forget("monday")
    assert not await why_late(catalog, "monday", "process 1", within=PATIENCE)
    with pytest.raises(LeaseLost, match="forgotten"):
        await live.gone(session)
    assert await catalog.owner("monday") is None


async def test_an_owner_that_stands_still_is_not_waited_for_beyond_its_lease(
    live: Live, catalog: SessionRegistry
) -> None:
    await live.redis.set(KEYS.owner, b'{"token": 1, "pid": 1, "host": "elsewhere"}')
    await catalog.forget("monday")
    assert "process 1 did not say" in await why_late(catalog, "monday", "process 1", within=0.1)


async def test_an_owner_that_was_asked_to_end_is_waited_for_without_a_word(
    live: Live, catalog: SessionRegistry
) -> None:
    running, ending = await live.start(), live.session()
    with capture_logs() as logs:
        ending.end()
        live.serve(ending)
        await live.conversation_state()  # time enough to find the session taken
        await catalog.request_end("monday")
        await live.gone(running)
        await live.gone(ending)
    assert "session.waiting" not in {entry["event"] for entry in logs}


async def test_forgetting_one_session_leaves_others_alone(live: Live, catalog: SessionRegistry) -> None:
    await ended(live, "monday")
    await ended(live, "monday-2")
    await catalog.forget("monday")
    assert [each.session_id for each in await catalog.sessions() if each.status == "ended"] == ["monday-2"]


async def test_what_was_refused_for_good_is_listed_and_goes_with_the_session(
    live: Live, catalog: SessionRegistry
) -> None:
    live.archive.failure = DataRejected("refuses")
    for forgotten in (True, False):
        await ended(live)
        (listed,) = await catalog.sessions()
        assert (listed.undelivered, listed.undeliverable) == (0, {"archive": 1, "memory": 0})
        assert await live.redis.llen(KEYS.archive_dead) == 1
        if forgotten:
            await catalog.forget("monday")
        else:
            assert await catalog.sweep(LATER) == ["monday"]
        assert [key async for key in live.redis.scan_iter("*monday*")] == []


async def test_many_sessions_are_looked_at_in_few_exchanges(live: Live, catalog: SessionRegistry) -> None:
    await live.redis.zadd(SESSIONS, {f"session-{number}": number for number in range(1, 1202)} | {b"mon\xff": 1300})
    await live.redis.config_resetstat()
    listed = await catalog.sessions()
    assert (len(listed), listed[0].session_id, listed[-1].session_id) == (1201, "session-1201", "session-1")
    assert (await live.redis.info("commandstats"))["cmdstat_exec"]["calls"] == 1201 // LOOKED_AT_ONCE + 1
    assert await catalog.newest(3) == ["session-1201", "session-1200"]


async def test_when_somebody_spoke_goes_by_redis_clock_and_never_back(live: Live, catalog: SessionRegistry) -> None:
    live.clock.advance(30 * 86_400)  # the process's own is wrong
    session = await live.start()
    await live.say(1)
    await live.shows(1)
    spoke = await live.redis.zscore(SESSIONS, "monday")
    assert spoke == pytest.approx(time.time(), abs=60)
    await live.redis.zadd(SESSIONS, {"monday": time.time() + 86_400})  # an earlier version's was ahead
    await live.say(2)
    await live.shows(1, 2)
    assert await live.redis.zscore(SESSIONS, "monday") == pytest.approx(time.time(), abs=60)
    await live.stop(session)
    live.clock.advance(30 * 86_400)
    await live.start()
    assert await live.redis.zscore(SESSIONS, "monday") >= spoke


async def test_a_session_of_which_only_messages_are_left_that_a_summary_leaves_is_swept(
    live: Live, catalog: SessionRegistry
) -> None:
    session = await live.start(summary_keep_last=2)
    await live.say(1, 2)
    await live.shows(1, 2)
    await live.stop(session)
    assert await catalog.sweep(LATER, keep_last=1) == []
    assert await catalog.sweep(LATER, keep_last=2) == ["monday"]
    assert not await live.redis.exists(KEYS.checkpoint)


async def test_who_forgot_a_session_in_part_is_told_so_and_who_began_it_anew_keeps_it(
    live: Live, catalog: SessionRegistry
) -> None:
    session = await live.start()
    await catalog.forget("monday")
    await session._store.forgotten_in_part()
    with pytest.raises(LeaseLost):
        await live.gone(session)
    assert await catalog.owner("monday") == {"token": 0, "forgotten": True, "in_part": True}
    assert "could not take back" in await why_late(catalog, "monday", "process 1", 1.0)
    anew = await live.start()
    lease = await live.redis.get(KEYS.owner)
    await session._store.forgotten_in_part()
    assert await live.redis.get(KEYS.owner) == lease
    await live.stop(anew)
