"""What goes wrong with one session or one server of a fleet leaves the others alone, and is named."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path

import orjson
import psutil
import pytest

from context_builder.session.keys import SESSIONS, Keys
from tests.fleet.conftest import AWAY, StartWorker
from tests.fleet.test_servers import second, second_server, status, urls
from tests.fleet.watching import Fleet, ready, said
from tests.services.daemon import Daemon, UnheardDaemon
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

__all__ = ["second", "second_server", "urls"]

pytestmark = [pytest.mark.engines, pytest.mark.slow]

PERIODIC = ("fleet.scan_failed", "fleet.workload_not_told", "fleet.sleepers_not_refreshed")
"""What is logged where all fails that a worker does now and then."""


@pytest.mark.parametrize("reports", ["El", ""])
async def test_a_server_that_begins_to_ask_for_a_password_stops_its_own_sessions_alone(
    start_worker: StartWorker, fleet: Fleet, second: Fleet, second_server: RedisServer, urls: str, reports: str
) -> None:
    await second.redis.config_set("notify-keyspace-events", reports)
    worker = start_worker(redis_urls=urls, redis_url="")
    await ready(worker)
    await fleet.say("monday")
    await second.say("lab-1", "lab-2", "lab-3")
    await fleet.hears("monday")
    await second.hears("lab-1", "lab-2", "lab-3")
    await second.redis.config_set("requirepass", "secret")
    await second.redis.client_kill_filter(_type="pubsub")
    await second.redis.client_kill_filter(_type="normal", skipme=True)
    await wait_until(
        lambda: all(worker.output.count(f'"{event}"') >= 2 for event in PERIODIC),
        "each of them fails twice",
    )
    await fleet.say("monday", "tuesday")
    await fleet.hears("monday", "tuesday")
    assert worker.process.poll() is None, worker.output
    found = status(worker.folder, urls)
    assert found["away"] == [f"127.0.0.1:{second_server.port}/0"]
    await second.redis.config_set("requirepass", "")
    await second.say("lab-1", "lab-2")
    await second.hears("lab-1", "lab-2")
    code = await asyncio.to_thread(worker.stop)
    assert code == 0, worker.output


async def test_keys_of_another_type_are_named_and_stop_no_other_session(
    start_worker: StartWorker, fleet: Fleet
) -> None:
    await fleet.redis.set(Keys("broken").input, "a mistake")
    await fleet.redis.set("conversation_state:asleep", "")
    worker = start_worker()
    await ready(worker)
    await fleet.say("monday")
    await fleet.hears("monday")
    await fleet.redis.delete(Keys("monday").pending)
    await fleet.redis.set(Keys("monday").pending, "a mistake")
    await fleet.say("tuesday")
    await fleet.hears("tuesday")
    found = status(worker.folder, worker_url(fleet))
    assert {one["session_id"] for one in found["sessions"]} == {"monday", "tuesday", "broken"}
    assert len(found["faults"]) == 2
    await wait_until(lambda: said(worker, "store.wrong_type"), "the log names the key")
    await fleet.redis.delete(Keys("monday").pending, Keys("broken").input)
    await fleet.say("monday", "broken")
    await fleet.hears("monday", "broken")


@pytest.mark.parametrize("key", ["pending", "checkpoint", "owner", "seen", "control"])
async def test_a_key_of_another_type_does_not_keep_the_others_from_being_taken_again(
    start_worker: StartWorker, fleet: Fleet, key: str
) -> None:
    worker = start_worker()
    await ready(worker)
    await fleet.say("monday", "tuesday")
    await fleet.hears("monday", "tuesday")
    name = getattr(Keys("monday"), key)
    async with fleet.redis.pipeline(transaction=True) as replaced:  # at once: its owner would write it anew
        replaced.delete(name)
        (replaced.set if key == "pending" else replaced.lpush)(name, "a mistake")
        await replaced.execute()
    await fleet.say("monday")
    await wait_until(lambda: said(worker, "store.wrong_type"), "the log names the key")
    await fleet.redis.config_set("maxmemory", "1000000")
    try:
        await wait_until(lambda: said(worker, "fleet.server_away"), "all sessions are handed over")
    finally:
        await fleet.redis.config_set("maxmemory", "0")
    await fleet.say("tuesday")
    await fleet.hears("tuesday")


async def test_an_id_that_no_session_can_have_is_named(start_worker: StartWorker, fleet: Fleet) -> None:
    await fleet.redis.zadd(SESSIONS, {b"\xff": 1, b"a b": 1})  # the sweep comes upon them
    worker = start_worker()
    await ready(worker)
    for name in ("team room", "a/b", "x\u200by"):
        await fleet.redis.lpush(f"context_builder:{name}:input", "{}")
    await wait_until(lambda: worker.output.count("fleet.unusable_session_id") == 3, "they are told")
    named = ["room:42", "ann@acme", "café", "वर्ग"]
    await fleet.say(*named)
    await fleet.hears(*named)
    assert sorted(status(worker.folder, worker_url(fleet))["unusable"]) == ["a/b", "team room", "x\u200by"]
    assert worker.process.poll() is None, worker.output


def worker_url(fleet: Fleet) -> str:
    return f"redis://127.0.0.1:{fleet.redis.connection_pool.connection_kwargs['port']}/0"


async def test_a_fleet_goes_on_though_nobody_reads_its_log(
    redis_server: RedisServer, fleet: Fleet, tmp_path: Path
) -> None:
    settings = {**AWAY, "redis_url": redis_server.url, "feed_memory": "false", "log_level": "debug"}
    with UnheardDaemon(tmp_path, "fleet", **settings) as worker:
        await fleet.say("monday", "tuesday")
        await fleet.hears("monday", "tuesday")
        await fleet.redis.set(Keys("monday").pending, "a mistake")  # which is worth a line
        await fleet.say("monday", "wednesday")
        await fleet.hears("wednesday")
        await fleet.redis.delete(Keys("monday").pending)
        await fleet.hears("monday")
        code = await asyncio.to_thread(worker.stop)
    assert code == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full disk here")
async def test_a_fleet_goes_on_though_the_disk_of_its_log_is_full(
    redis_server: RedisServer, fleet: Fleet, tmp_path: Path
) -> None:
    settings = {**AWAY, "redis_url": redis_server.url, "feed_memory": "false", "log_level": "debug"}
    full = os.open("/dev/full", os.O_WRONLY)
    with Daemon(tmp_path, "fleet", stdout=full, **settings) as worker:
        os.close(full)
        await fleet.say("monday")
        await fleet.hears("monday")
        await fleet.say("monday", "tuesday")
        await fleet.hears("monday", "tuesday")
        assert worker.process.poll() is None


async def test_a_fleet_goes_on_when_its_analysis_process_is_killed(start_worker: StartWorker, fleet: Fleet) -> None:
    worker = start_worker(domain_inference_interval=1)
    await ready(worker)
    long = "Helicase unwinds the double helix. " * 400  # which no loop reads by itself
    await fleet.say("first", text=long)
    for name in ("second", "third"):
        for process in await wait_until(lambda: _analysis(worker), "the analysis process runs"):
            process.kill()
        await fleet.say(name, text=long)
        await fleet.hears(name)
        await wait_until(partial(_has_keywords, fleet, name), f"{name} has keywords")
    assert worker.process.poll() is None, worker.output


def _analysis(worker: Daemon) -> list[psutil.Process]:
    children = psutil.Process(worker.process.pid).children(recursive=True)
    return [one for one in children if "spawn_main" in " ".join(one.cmdline()) and one.status() != psutil.STATUS_ZOMBIE]


async def _has_keywords(fleet: Fleet, session_id: str) -> bool:
    state = orjson.loads(await fleet.redis.get(Keys(session_id).state) or b"{}")
    return bool(state.get("current_keywords"))
