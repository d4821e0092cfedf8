"""The daemon as a real process: signals, crashes, exit statuses, what it says when something is wrong."""

from __future__ import annotations

import asyncio
import itertools
import math
import signal
import socket
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.session.client import SessionClient
from tests.services.command import command
from tests.services.daemon import Daemon
from tests.services.model_server import Fault, ModelServer
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until
from tests.session.saying import spoken

pytestmark = [pytest.mark.engines, pytest.mark.slow]

HOUR = 3600.0


class Monday:
    """Session ``monday``: its daemons, and what a listener and a reader do with it."""

    def __init__(self, redis: Redis, url: str, folder: Path) -> None:
        self.client = SessionClient(redis, "monday")
        self.url = url
        self.folder = folder

    def daemon(self, *arguments: str, **settings: object) -> Daemon:
        return Daemon(self.folder, "monday", *arguments, **{"redis_url": self.url, **settings})

    async def say(self, *numbers: int) -> None:
        await self.client.push(*(spoken(number) for number in numbers))

    async def shows(self, *numbers: int) -> dict[str, Any]:
        """The state, once its buffer has exactly these message numbers."""
        heard: list[int] = []

        async def seen() -> Any:
            state = await self.client.state() or {}
            heard[:] = [entry["message_number"] for entry in state.get("raw_recent_buffer", [])]
            return state if heard == [*numbers] else None

        try:
            return await wait_until(seen, f"the buffer has {len(numbers)} messages")
        except AssertionError as error:
            missing, other = sorted({*numbers} - {*heard}), [one for one in heard if one not in numbers]
            raise AssertionError(f"{error}; {len(heard)} heard, {missing=}, {other=}") from None


@pytest.fixture
def monday(redis: Redis, redis_server: RedisServer, tmp_path: Path) -> Monday:
    return Monday(redis, redis_server.url, tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_it_in_order_and_loses_nothing(monday: Monday, number: signal.Signals) -> None:
    with monday.daemon() as daemon:
        await monday.say(1, 2, 3)
        await monday.shows(1, 2, 3)
        assert daemon.stop(number) == 0, daemon.output
        assert "session.stopped" in daemon.output
        assert "Traceback" not in daemon.output
    assert await monday.client.owner() is None
    assert (await monday.client.state() or {})["received_messages"] == 3


async def test_a_hanging_model_does_not_hold_up_the_end(monday: Monday) -> None:
    with ModelServer() as server:
        server.model.fault = Fault.HANG
        with monday.daemon(openai_base_url=server.base_url, openai_api_key="sk-secret") as daemon:
            await monday.say(1, 2, 3, 4, 5)
            await wait_until(lambda: server.model.requests, "it is asked")
            assert daemon.stop() == 0, daemon.output
            assert "session.cut_off" not in daemon.output
            assert "sk-secret" not in daemon.output


async def test_a_model_that_tells_absurd_figures_of_itself_does_not_end_it(monday: Monday) -> None:
    figures = itertools.cycle([-1, 10**23, math.nan, "7", None])

    def absurd(body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "usage": dict.fromkeys(("prompt_tokens", "completion_tokens"), next(figures))}

    with ModelServer() as server:
        server.model.distorted = absurd
        with monday.daemon(openai_base_url=server.base_url, raw_buffer_time_window=0.5) as daemon:
            for number in range(1, 11):
                await monday.say(number)
                await wait_until(lambda n=number: len(server.model.requests) >= n, "it is asked")

            async def all_summarized() -> dict[str, Any] | None:
                state = await monday.client.state() or {}
                return state if state["rolling_summary"]["message_count"] == 10 else None

            state = await wait_until(all_summarized, "all is summarized")
            assert daemon.process.poll() is None, daemon.output
    assert state["analyst"] == {"keywords": "openai", "domains": "openai", "summary": "openai"}
    tasks = state["cost"]["tasks"].values()
    assert sum(task["calls"] for task in tasks) >= 10
    assert {task["prompt_tokens"] for task in tasks} == {0}


async def test_killed_at_any_moment_and_started_again_it_loses_and_doubles_nothing(monday: Monday) -> None:
    pushed = 0
    for moments in (7, 20, 33):
        with monday.daemon(raw_buffer_time_window=HOUR) as daemon:
            await wait_until(partial(getattr, daemon, "is_ready"), "the daemon is ready")
            for _ in range(moments):
                await monday.say(*range(pushed + 1, pushed + 11))
                pushed += 10
                await asyncio.sleep(0.001)
            daemon.kill()
    with monday.daemon(raw_buffer_time_window=HOUR):
        state = await monday.shows(*range(1, pushed + 1))
    assert (state["received_messages"], state["messages_since_summary"]) == (pushed, pushed)


async def test_a_second_process_that_may_not_wait_names_the_first(monday: Monday) -> None:
    with monday.daemon() as first:
        await wait_until(lambda: first.is_ready, "the first is ready")
        with monday.daemon("--no-wait") as second:
            assert second.wait() == 3
            last = second.output.splitlines()[-1]
        assert last.startswith(f"context-builder: session monday is run by process {first.process.pid} on ")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("POLL_INTERVAL", "often", "POLL_INTERVAL: "),
        ("CONTEXT_BUILDER_RAW_BUFFER_MAX_MESSAGES", "-5", "CONTEXT_BUILDER_RAW_BUFFER_MAX_MESSAGES: "),
        ("CONTEXT_BUILDER_POL_INTERVAL", "1", "CONTEXT_BUILDER_POL_INTERVAL: unknown setting; did you mean"),
        ("REDIS_URL", "http://:hunter2@cache", "REDIS_URL: must begin with redis:// or "),
    ],
)
def test_a_wrong_setting_ends_it_with_one_line_that_names_it(tmp_path: Path, name: str, value: str, told: str) -> None:
    done = command(tmp_path, "run", "monday", **{name: value})
    assert done.exit_code == 2
    assert done.output.startswith(f"context-builder: {told}")
    assert done.output.count("\n") == 1
    assert "hunter2" not in done.output


def test_a_session_id_that_could_reach_other_keys_is_refused(tmp_path: Path) -> None:
    done = command(tmp_path, "run", "a b")
    assert done.exit_code == 1
    assert (
        done.output == "context-builder: session id 'a b': use 1 to 128 letters, digits or any of . , _ - : @ + ~ =\n"
    )


async def test_a_redis_that_is_away_is_said_so_and_waited_for(tmp_path: Path, engine_folder: Path) -> None:
    folder = engine_folder / f"late-redis-{free_port()}"
    folder.mkdir()
    server = RedisServer(folder)
    port = free_port()
    with Daemon(tmp_path, "monday", redis_url=server.url, http_port=port) as daemon:
        await wait_until(lambda: '"retrying"' in daemon.output, "it says what is wrong")
        await wait_until(lambda: _vain_tries(port) > 5, "it tries again and again")
        told = daemon.output
        server.start()
        try:
            await wait_until(lambda: daemon.is_ready, "it goes on")
        finally:
            status = daemon.stop()
            server.kill()
        assert status == 0
        assert "Redis is not available: 127.0.0.1" in told
        assert told.count("retrying") == 1
        assert daemon.output.count('"redis.back"') == 1
        assert "Traceback" not in daemon.output


def _vain_tries(port: int) -> float:
    """Commands that Redis did not carry out, as the daemon itself counts them."""
    page = httpx.get(f"http://{LOOPBACK}:{port}/metrics").text
    return float(page.partition("\ncontext_builder_store_failures_total ")[2].partition("\n")[0] or 0)


async def test_it_can_be_stopped_while_redis_is_away(tmp_path: Path) -> None:
    with Daemon(tmp_path, "monday", redis_url=f"redis://{LOOPBACK}:{free_port()}/0") as daemon:
        await wait_until(lambda: '"retrying"' in daemon.output, "it says what is wrong")
        assert daemon.stop() == 0, daemon.output
        assert "session.cut_off" not in daemon.output


async def test_metrics_and_health_are_served_when_asked_for(monday: Monday) -> None:
    port = free_port()
    with monday.daemon(http_port=port) as daemon:
        await wait_until(lambda: daemon.is_ready, "the daemon is ready")
        await monday.say(1)
        await monday.shows(1)
        async with httpx.AsyncClient(base_url=f"http://{LOOPBACK}:{port}") as web:
            assert [(await web.get(path)).status_code for path in ("/livez", "/readyz")] == [200, 200]
            page = (await web.get("/metrics")).text
        assert 'context_builder_messages_total{outcome="new"} 1.0' in page
        assert "context_builder_sessions 1.0" in page
        named = [line for line in page.splitlines() if "monday" in line]
        assert all(line.startswith("context_builder_session_") for line in named)  # the cost of each session
        assert daemon.stop() == 0


def test_a_port_that_is_taken_is_a_wrong_setting(monday: Monday) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with monday.daemon(http_port=port) as daemon:
            assert daemon.wait() == 2
            last = daemon.output.splitlines()[-1]
    assert (
        last == f"context-builder: HTTP_PORT: port {port} of 127.0.0.1 is taken by another program; choose another port"
    )
