"""Sessions that share a host: it reads their inputs and keeps them fresh, and each keeps every guarantee."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import AsyncMock

import pytest
from redis.asyncio import Redis

from context_builder.analysis.text import TextAnalyst
from context_builder.errors import AnalystUnavailable, LeaseLost
from context_builder.session.config import SessionConfig
from context_builder.session.host import SessionHost, open_host
from context_builder.session.keys import Keys
from context_builder.session.session import Session, SessionDependencies
from context_builder.storage import multiplexed
from context_builder.storage.redis import client_for
from tests.services.link import Link
from tests.services.redis_server import RedisServer
from tests.services.waiting import PATIENCE, wait_until
from tests.session.conftest import HOSTED
from tests.session.live import Live
from tests.session.saying import spoken, words

pytestmark = pytest.mark.engines

NAMES = [f"session-{number}" for number in range(100)]
TICK = 0.2


@pytest.fixture(params=["announced", "asked for"])
async def host(live: Live, request: pytest.FixtureRequest) -> AsyncIterator[SessionHost]:
    """A host on a Redis that announces pushes, or does not."""
    announced = request.param == "announced"
    await live.redis.config_set("notify-keyspace-events", "El" if announced else "")
    async with open_host(live.client, SessionConfig(tick=TICK)) as host:
        if announced:
            await wait_until(lambda: host.arrivals.are_announced, "pushes are announced")
        yield host
        for session in list(live.tasks):
            session.stop()
        await asyncio.gather(*live.tasks.values(), return_exceptions=True)
    await live.redis.config_set("notify-keyspace-events", "")


async def serve(live: Live, host: SessionHost, *names: str) -> list[Session]:
    parts = SessionDependencies(live.analyst, live.last_resort, live.archive, words, live.clock)
    sessions = [Session(host, name, SessionConfig(tick=TICK), parts) for name in names]
    for session in sessions:
        live.serve(session)
    for session in sessions:
        await asyncio.wait_for(session.ready.wait(), PATIENCE)
    return sessions


async def test_a_hundred_sessions_each_publish_their_own(live: Live, host: SessionHost) -> None:
    await serve(live, host, *NAMES)
    for number in (1, 2):
        for name in NAMES:
            await live.say(number, session_id=name)
        for name in NAMES:
            await live.shows(*range(1, number + 1), session_id=name)
    assert await live.redis.exists(*(Keys(name).input for name in NAMES)) == 0


async def test_a_message_and_its_keywords_are_one_commit(
    live: Live, host: SessionHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SessionHost, "_refresh_batch", AsyncMock())  # which may take it for one of several
    with ThreadPoolExecutor(1) as executor:
        analyst = TextAnalyst(executor, is_shared=True)
        parts = SessionDependencies(analyst, analyst, live.archive, words, live.clock)
        session = Session(host, "monday", SessionConfig(tick=TICK), parts)
        live.serve(session)
        await asyncio.wait_for(session.ready.wait(), PATIENCE)
        revision = (await live.state())["revision"]
        await live.push(spoken(1, text="The kelp genome assembly failed overnight"))
        state = await live.shows(1)
        assert state["raw_recent_buffer"][0]["keywords"]
        assert state["revision"] == revision + 1
        await live.stop(session)


async def test_they_need_a_handful_of_connections(live: Live, host: SessionHost) -> None:
    before = len(await live.redis.client_list())
    await serve(live, host, *NAMES)
    for name in NAMES:
        await live.say(1, session_id=name)
    for name in NAMES:
        await live.shows(1, session_id=name)
    assert len(await live.redis.client_list()) <= before + 5


async def test_without_announcements_and_questions_the_refresher_finds_what_waits(
    live: Live, host: SessionHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    await serve(live, host, "monday")
    monkeypatch.setattr(SessionHost, "_unread", lambda self: [])
    await live.redis.config_set("notify-keyspace-events", "")
    await live.say(1)
    await live.shows(1)


async def test_pushes_are_asked_for_once_they_are_not_announced_any_more(
    live: Live, host: SessionHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("context_builder.session.arrivals.PROBE_SECONDS", 0.1)
    monkeypatch.setattr(SessionHost, "_refresh_batch", AsyncMock())  # the refresher looks at nothing
    await serve(live, host, "monday")
    await live.redis.config_set("notify-keyspace-events", "")
    await live.say(1)
    await live.shows(1)


async def test_what_is_said_while_the_network_loses_its_connections_is_seen(
    redis: Redis, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multiplexed, "SILENT_SECONDS", 60.0)
    await redis.config_set("notify-keyspace-events", "El")
    async with (
        Link(redis_server.port).opened() as link,
        client_for(f"redis://127.0.0.1:{link.port}/0") as client,
        open_host(client, SessionConfig(tick=0.1)) as host,
    ):
        live = Live(client, redis, host)
        session = await live.start(tick=0.1)
        await wait_until(lambda: host.arrivals.are_announced, "pushes are announced")
        for number in range(1, 6):
            await live.say(number)
            await live.shows(*range(1, number + 1))
            link.strand()
        await live.stop(session)


async def test_the_conversation_state_tells_the_time_without_a_commit(live: Live, host: SessionHost) -> None:
    (session,) = await serve(live, host, "monday")
    await live.say(1)
    analysed = {"keywords": "stub", "domains": None, "summary": None}
    await live.until("the message is there, with its keywords", messages_since_summary=1, analyst=analysed)
    revision = session._store.revision
    live.clock.advance(3.0)
    await wait_until(lambda: _passed(live, 3.0), "three seconds have passed")
    assert (await live.conversation_state())["silence"] is False
    live.clock.advance(1.5)
    await wait_until(lambda: _passed(live, 4.5), "four and a half seconds have passed")
    assert (await live.conversation_state())["silence"] is True
    assert session._store.revision - revision <= 1  # at most that it is remembered
    await wait_until(lambda: session.is_served, "the session has heard that it was refreshed")


async def _passed(live: Live, seconds: float) -> bool:
    return bool((await live.conversation_state())["time_since_last_message"] == seconds)


async def test_the_lease_and_the_state_of_a_quiet_session_live_on(live: Live, host: SessionHost) -> None:
    await serve(live, host, "monday")
    keys = Keys("monday")
    await live.redis.pexpire(keys.owner, 5_000)
    await live.redis.pexpire(keys.state, 5_000)

    async def renewed() -> bool:
        return await live.redis.pttl(keys.owner) > 5_000 and await live.redis.pttl(keys.state) > 3_000_000

    await wait_until(renewed, "lease and state are renewed")


async def test_a_quiet_session_learns_that_it_was_taken_over_and_writes_nothing_more(
    live: Live, host: SessionHost
) -> None:
    lost, kept = await serve(live, host, "monday", "tuesday")
    live.clock.advance(1.0)
    owner = await live.start("monday", takeover=True)
    with pytest.raises(LeaseLost):
        await live.gone(lost)
    await live.say(1)
    await live.shows(1)
    await live.say(1, session_id="tuesday")
    await live.shows(1, session_id="tuesday")
    assert owner.is_served
    assert kept.is_served


async def test_a_quiet_session_ends_when_asked_to(live: Live, host: SessionHost) -> None:
    (session,) = await serve(live, host, "monday")
    await live.say(1)
    await live.shows(1)
    await live.redis.set(Keys("monday").control, "end")
    await live.gone(session)
    assert (await live.state())["rolling_summary"]["message_count"] == 1
    assert len(live.archive.rows) == 1


async def test_quiet_sessions_restore_what_redis_lost(live: Live, host: SessionHost, redis_server: RedisServer) -> None:
    await serve(live, host, *NAMES[:10])
    for name in NAMES[:10]:
        await live.say(1, session_id=name)
        await live.shows(1, session_id=name)
    await live.redis.flushall()
    for name in NAMES[:10]:
        await live.shows(1, session_id=name)
        await live.say(2, session_id=name)
        await live.shows(1, 2, session_id=name)


@pytest.mark.parametrize("live", [HOSTED], indirect=True)
async def test_what_redis_lost_is_restored_when_a_summary_cannot_read_it(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SessionHost, "_refresh_batch", AsyncMock())  # the refresher looks at nothing
    live.analyst.failure = AnalystUnavailable("away", retry_after=1.0)
    await live.start(buffer_max=1)
    await live.say(1, 2, 3)
    await live.fails("summary")
    await live.redis.flushall()
    live.analyst.failure = None
    live.clock.advance(2.0)
    await live.until("all is summarized", message_count=3)


async def test_they_go_on_when_redis_is_back(live: Live, host: SessionHost, redis_server: RedisServer) -> None:
    sessions = await serve(live, host, *NAMES[:10])
    redis_server.kill()
    await live.tried_in_vain()
    redis_server.start()
    for name in NAMES[:10]:
        await live.say(1, session_id=name)
        await live.shows(1, session_id=name)
    await wait_until(lambda: all(session.is_served for session in sessions), "all are served again")


async def test_a_key_of_the_wrong_type_disturbs_only_its_own_session(live: Live, host: SessionHost) -> None:
    await serve(live, host, "monday", "tuesday")
    await live.redis.delete(Keys("monday").checkpoint)
    await live.redis.set(Keys("monday").checkpoint, "somebody's")
    live.clock.advance(1.0)
    await live.say(1, session_id="tuesday")
    await live.shows(1, session_id="tuesday")
    await live.redis.delete(Keys("monday").checkpoint)
    await live.say(1)
    await live.shows(1)
