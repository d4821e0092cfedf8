"""Redis and the way to it fail: the session keeps its own state, loses nothing, and goes on at once when it may."""

from __future__ import annotations

import asyncio
from asyncio import StreamWriter
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis.asyncio import Redis

from context_builder.cli.signals import within_grace
from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.session.keys import Keys
from context_builder.storage.redis import client_for
from context_builder.storage.redis_availability import COMMAND_TIMEOUT
from tests.faults.resp import Frames
from tests.services.link import Link
from tests.services.redis_server import RedisServer
from tests.services.waiting import PATIENCE, wait_until
from tests.session.live import Live

pytestmark = pytest.mark.engines


class BreakingLink(Link):
    """Breaks connections instead of passing on command number ``at``, counted from 1, or ``instead`` its answer."""

    def __init__(self, target: int, at: int, instead: str = "command") -> None:
        super().__init__(target)
        self.passed = 0
        self._at = at
        self._instead = instead
        self._frames: dict[StreamWriter, Frames] = {}

    async def forward(self, data: bytes, sink: StreamWriter, *, inward: bool) -> None:
        if not inward and self.passed == self._at and self._instead == "answer":
            self.passed += 1
            return self.cut()
        if not inward:
            return await super().forward(data, sink, inward=inward)
        for frame in self._frames.setdefault(sink, Frames()).cut(data):
            self.passed += 1
            if self.passed == self._at and self._instead == "command":
                return self.cut()
            await super().forward(frame, sink, inward=inward)
        return None


async def test_connections_that_break_at_any_time_lose_and_double_nothing(live: Live, link: Link) -> None:
    await live.start()
    for number in range(1, 101):
        await live.say(number)
        if number % 3 == 0:
            link.cut()
        if number % 7 == 0:
            link.cut_inside()
    state = await live.shows(*range(1, 101))
    assert state["received_messages"] == 100


@pytest.mark.parametrize("instead", ["command", "answer"])
@pytest.mark.parametrize("at", range(1, 9))
async def test_a_connection_that_breaks_at_any_command_of_the_start_is_replaced(
    redis: Redis, redis_server: RedisServer, at: int, instead: str
) -> None:
    async with (
        BreakingLink(redis_server.port, at, instead).opened() as link,
        client_for(f"redis://{LOOPBACK}:{link.port}/0") as client,
    ):
        live = Live(client, redis)
        session = await live.start()
        await live.say(1)
        await live.shows(1)
        await live.say(2)
        await live.shows(1, 2)
        assert link.passed >= at
        await live.stop(session)


async def test_commits_whose_answers_are_lost_count_once(live: Live, link: Link) -> None:
    await live.start()
    for number in range(1, 41):
        async with link.deaf():
            await live.say(number)
            await asyncio.sleep(0.0005 * number)  # so that the loss falls on this answer or that
        await asyncio.sleep(0.01)  # the pause between two losses is the fault's, not a wait for something
    state = await live.shows(*range(1, 41))
    assert state["received_messages"] == 40


async def test_a_stalled_network_is_waited_out(live: Live, link: Link) -> None:
    await live.start()
    async with link.stalled():
        await live.say(1, 2)
        assert (await live.state())["received_messages"] == 0
    await live.shows(1, 2)


@pytest.mark.slow
async def test_connections_that_died_without_a_word_are_replaced(live: Live, link: Link) -> None:
    await live.start()
    await live.say(1)
    await live.shows(1)
    link.strand()
    await live.say(2)
    await live.shows(1, 2)


@pytest.mark.slow
async def test_a_session_that_is_stopped_does_not_wait_for_a_stalled_redis(live: Live, link: Link) -> None:
    session = live.session()
    serving = asyncio.create_task(within_grace(session.serve(), session.told_to_stop))
    await asyncio.wait_for(session.ready.wait(), PATIENCE)
    async with link.stalled():
        session.stop()
        await asyncio.wait_for(serving, PATIENCE)


@pytest.mark.slow
async def test_a_connection_that_never_answers_is_given_up_and_replaced(live: Live, link: Link) -> None:
    await live.start(lease=2 * COMMAND_TIMEOUT)
    await live.say(1)
    await live.shows(1)
    async with link.stalled():
        await live.say(2)
        await asyncio.sleep(COMMAND_TIMEOUT + 1)  # longer than it waits for an answer: that is the fault
    await live.shows(1, 2)


async def test_an_owner_that_was_cut_off_past_its_lease_goes_on(live: Live, link: Link, redis: Redis) -> None:
    await live.start(lease=0.3)
    async with link.stalled():
        await live.say(1)
        await wait_until(lambda: _is_gone(redis, Keys("monday").owner), "the lease ran out")
    await live.shows(1)


async def test_memory_that_runs_out_loses_nothing(live: Live, link: Link, redis: Redis) -> None:
    await live.start()
    async with link.stalled():
        await live.say(1, 2)
        await redis.config_set("maxmemory", 1)
    try:
        refused = asyncio.create_task(live.start("tuesday"))
        await live.tried_in_vain()  # a new session may not even be owned
        assert not refused.done()
    finally:
        await redis.config_set("maxmemory", 0)
    await refused
    await live.say(3)
    state = await live.shows(1, 2, 3)
    assert state["received_messages"] == 3


async def test_a_replica_that_accepts_no_writes_is_waited_out(live: Live, redis: Redis, unused_port: int) -> None:
    session = await live.start()
    await live.say(1)
    await live.shows(1)
    await redis.execute_command("REPLICAOF", "127.0.0.1", unused_port)  # as after a failover
    try:
        await live.tried_in_vain()
        assert not live.tasks[session].done()
    finally:
        await redis.execute_command("REPLICAOF", "NO", "ONE")
    await live.say(2)
    state = await live.shows(1, 2)
    assert state["received_messages"] == 2


async def test_a_redis_that_loads_its_data_is_waited_for(slow_to_load: RedisServer) -> None:
    async with client_for(slow_to_load.url) as client, client_for(slow_to_load.url) as redis:
        live = Live(client, redis)
        session = await live.start()
        await live.say(1, 2)
        await live.shows(1, 2)
        async with redis.pipeline(transaction=False) as filling:
            for number in range(3000):
                filling.set(f"filling:{number}", "x")
            await filling.execute()

        async def tells_that_it_loads() -> bool:
            slow_to_load.kill()
            told = asyncio.create_task(_told_loading(slow_to_load))
            await asyncio.to_thread(slow_to_load.start)  # returns when it has loaded
            return await told

        await wait_until(tells_that_it_loads, "it is asked while it loads")
        await redis.connection_pool.disconnect()
        await live.say(3)
        await live.shows(1, 2, 3)
        await live.stop(session)


async def _told_loading(server: RedisServer) -> bool:
    """Whether it answers that it is still loading, at its start."""
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
            writer.write(b"PING\r\n")
            answer = await reader.readline()
            writer.close()
            return answer.startswith(b"-LOADING")
        await asyncio.sleep(0.005)


@pytest.fixture
async def slow_to_load(engine_folder: Path) -> AsyncIterator[RedisServer]:
    """A Redis that takes half a millisecond for each command it loads, and says so meanwhile."""
    folder = engine_folder / "slow-to-load"
    folder.mkdir()
    server = RedisServer(folder, "--appendfsync", "always", "--key-load-delay", "300")
    await asyncio.to_thread(server.start)
    yield server
    server.kill()


@pytest.fixture
def unused_port() -> int:
    return free_port()


async def _is_gone(redis: Redis, key: str) -> bool:
    return not await redis.exists(key)
