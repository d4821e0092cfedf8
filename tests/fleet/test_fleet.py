"""Sessions that nobody starts: found, run once, handed over, taken over, put to sleep and woken."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import orjson
import pytest

from context_builder.session.keys import Keys
from context_builder.session.store.registry import SessionRegistry
from tests.fleet.conftest import AWAY, StartWorker
from tests.fleet.watching import Fleet, ready, said
from tests.services.daemon import Daemon
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.engines, pytest.mark.slow]

NAMES = [f"session-{number}" for number in range(12)]


async def test_a_session_runs_once_somebody_speaks_and_only_once(start_worker: StartWorker, fleet: Fleet) -> None:
    await fleet.redis.config_set("notify-keyspace-events", "El")
    workers = [start_worker(), start_worker()]
    await ready(*workers)
    for worker in workers:
        await wait_until(lambda worker=worker: said(worker, "fleet.hears_pushes"), "it hears pushes")
    await fleet.say("monday")
    await fleet.hears("monday")
    await fleet.say(*NAMES)
    await fleet.hears(*NAMES)
    assert sum(worker.output.count('"session.ready"') for worker in workers) == 1 + len(NAMES)


async def test_without_events_a_scan_finds_it(start_worker: StartWorker, fleet: Fleet) -> None:
    await fleet.redis.config_set("notify-keyspace-events", "")
    worker = start_worker(discovery_scan=0.3)
    await ready(worker)
    await fleet.say("monday")
    await fleet.hears("monday")
    assert "fleet.hears_pushes" not in worker.output


async def test_what_was_pushed_before_the_first_worker_came_is_found(start_worker: StartWorker, fleet: Fleet) -> None:
    await fleet.redis.config_set("notify-keyspace-events", "El")
    await fleet.redis.lpush("context_builder:no session:input", "{}")
    await fleet.say("monday", "tuesday", "tuesday")
    worker = start_worker(discovery_scan=60)
    await ready(worker)
    await fleet.hears("monday", "tuesday")


async def test_a_worker_that_stops_hands_its_sessions_to_another(start_worker: StartWorker, fleet: Fleet) -> None:
    await fleet.redis.config_set("notify-keyspace-events", "El")
    leaving = start_worker()
    await ready(leaving)
    await fleet.say(*NAMES)
    await fleet.owned_by(leaving, sessions=NAMES)
    for number in (signal.SIGTERM, signal.SIGINT):
        staying = start_worker()
        await ready(staying)
        leaving.process.send_signal(number)
        await fleet.owned_by(staying, sessions=NAMES)
        assert leaving.wait() == 0
        await fleet.say(*NAMES)
        await fleet.hears(*NAMES)
        assert "fleet.session_failed" not in leaving.output + staying.output
        leaving = staying


async def test_the_sessions_of_a_dead_or_frozen_worker_run_elsewhere(start_worker: StartWorker, fleet: Fleet) -> None:
    await fleet.redis.config_set("notify-keyspace-events", "El")
    dying = start_worker()
    await ready(dying)
    await fleet.say(*NAMES)
    await fleet.owned_by(dying, sessions=NAMES)
    for fault in (signal.SIGKILL, signal.SIGSTOP):
        staying = start_worker()
        await ready(staying)
        dying.process.send_signal(fault)
        await fleet.say(*NAMES)
        await fleet.hears(*NAMES)
        await fleet.owned_by(staying, sessions=NAMES)
        frozen, dying = dying, staying
    await _thaws(frozen, staying, fleet)


async def _thaws(frozen: Daemon, staying: Daemon, fleet: Fleet) -> None:
    """Who comes back leaves the sessions where they are, and takes them when their owner goes."""
    os.kill(frozen.process.pid, signal.SIGCONT)
    await wait_until(lambda: frozen.output.count("fleet.session_lost") >= len(NAMES), "all are lost")
    await fleet.say(*NAMES)
    await fleet.hears(*NAMES)
    assert set((await fleet.owners(*NAMES)).values()) == {staying.process.pid}
    staying.kill()
    await fleet.say(*NAMES)
    await fleet.hears(*NAMES)


async def test_a_fleet_goes_on_when_redis_is_back(
    start_worker: StartWorker, fleet: Fleet, redis_server: RedisServer
) -> None:
    await fleet.redis.config_set("notify-keyspace-events", "El")
    workers = [start_worker(), start_worker()]
    await ready(*workers)
    await fleet.say(*NAMES)
    await fleet.hears(*NAMES)
    redis_server.restart()
    await fleet.redis.connection_pool.disconnect()  # of before
    await fleet.redis.config_set("notify-keyspace-events", "El")
    await fleet.say(*NAMES, "monday")
    await fleet.hears(*NAMES, "monday")
    leaving, staying = workers
    leaving.process.send_signal(signal.SIGTERM)
    await fleet.owned_by(staying, sessions=[*NAMES, "monday"])
    await fleet.say(*NAMES, "tuesday")
    await fleet.hears(*NAMES, "tuesday")


@pytest.mark.long
async def test_many_sessions_at_once_move_again_and_again(start_worker: StartWorker, fleet: Fleet) -> None:
    names = [f"session-{number}" for number in range(150)]
    await fleet.redis.config_set("notify-keyspace-events", "El")
    running = [start_worker(), start_worker()]
    await ready(*running)
    await fleet.say(*names)
    await fleet.hears(*names)
    for how in (signal.SIGKILL, signal.SIGTERM):
        leaving = running.pop(0)
        leaving.process.send_signal(how)
        await fleet.owned_by(*running, sessions=names)
        running.append(start_worker())
        await ready(running[-1])
    await fleet.say(*names)
    await fleet.hears(*names)


async def test_a_session_sleeps_stays_readable_and_wakes_by_its_next_message(
    start_worker: StartWorker, fleet: Fleet, migrated_url: str
) -> None:
    await fleet.redis.config_set("notify-keyspace-events", "El")
    fast = {"session_sleep": 1.2, "silence_threshold": 0.5, "raw_buffer_time_window": 0.3, "poll_interval": 0.1}
    worker = start_worker(**fast, conversation_state_ttl=2.5, database_url=migrated_url)
    await ready(worker)
    await fleet.say("monday")
    await fleet.hears("monday")
    await wait_until(lambda: said(worker, "fleet.session_sleeps"), "it sleeps")
    keys = Keys("monday")
    assert await fleet.redis.exists(keys.owner) == 0
    assert await fleet.redis.exists(keys.state, keys.checkpoint) == 2
    last = orjson.loads(await fleet.redis.get(keys.state))["last_message_time"]

    async def fresh() -> Any:
        state = orjson.loads(await fleet.redis.get(keys.conversation) or b"{}")
        assert state.get("silence") is not False
        return state if state.get("time_since_last_message", 0) > 4.0 else None  # longer than such a state lives here

    told = await wait_until(fresh, "the silence of a sleeping session is told")
    assert told["last_message_time"] == last
    assert told["time_since_last_message"] < time.time() - last + 1
    await fleet.say("monday")
    await fleet.hears("monday")
    assert orjson.loads(await fleet.redis.get(keys.state))["last_message_time"] > last


async def test_what_is_pushed_while_a_session_leaves_is_never_missed(
    start_worker: StartWorker, fleet: Fleet, migrated_url: str
) -> None:
    await fleet.redis.config_set("notify-keyspace-events", "El")
    fast = {"session_sleep": 0.12, "silence_threshold": 0.1, "raw_buffer_time_window": 0.05, "poll_interval": 0.05}
    worker = start_worker(**fast, discovery_scan=3600, database_url=migrated_url)
    await ready(worker)
    for _ in range(15):
        await fleet.say("monday")
        await fleet.hears("monday")
        await wait_until(lambda: _is_left(fleet), "it leaves", poll=0.0005)  # docket has its task still


async def _is_left(fleet: Fleet) -> bool:
    return not await fleet.owners("monday")


async def test_a_session_in_a_terminal_is_left_alone_and_taken_when_that_ends(
    start_worker: StartWorker, fleet: Fleet, redis_server: RedisServer
) -> None:
    await fleet.redis.config_set("notify-keyspace-events", "El")
    worker = start_worker()
    await ready(worker)
    settings = {"redis_url": redis_server.url, "log_format": "json", "feed_memory": "false"}
    with Daemon(worker.folder, "run", "monday", **settings, **AWAY) as terminal:
        await wait_until(lambda: terminal.is_ready, "it is run in a terminal")
        await fleet.say("monday")
        await fleet.hears("monday")
        await wait_until(lambda: said(worker, "session.waiting"), "the worker waits")
        assert await fleet.owners("monday") == {"monday": terminal.process.pid}
        terminal.stop(signal.SIGINT)
    await fleet.owned_by(worker, sessions=["monday"])


async def test_a_forgotten_session_is_not_run_again(start_worker: StartWorker, fleet: Fleet) -> None:
    worker = start_worker()
    await ready(worker)
    await fleet.say("monday")
    await fleet.hears("monday")
    await SessionRegistry(fleet.redis).forget("monday")
    await wait_until(lambda: said(worker, "fleet.session_lost"), "it is lost")
    await fleet.say("tuesday")
    await fleet.hears("tuesday")
    assert await fleet.redis.exists(*Keys("monday").all()) == 0
