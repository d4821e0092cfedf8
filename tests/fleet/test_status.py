"""What ``fleet status`` shows of workers and sessions."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest
from typer.testing import CliRunner

from context_builder import cli
from context_builder.fleet.process import Workload
from context_builder.fleet.status import FleetStatus, SessionStatus, WorkerStatus, status_of
from context_builder.session.store.registry import RegisteredSession
from tests.fleet.conftest import StartWorker
from tests.fleet.watching import Fleet, ready
from tests.services.redis_server import RedisServer

ANN = {"host": "lab-3", "pid": 11}
SESSION = RegisteredSession("monday", ANN, 1.0, None, 5, 2, 0, 0, 0, 0, {})


def test_sessions_are_counted_by_who_runs_them() -> None:
    sessions = [
        SESSION,
        replace(SESSION, session_id="tuesday", waiting=3),
        replace(SESSION, session_id="by hand", owner={"host": "lab-3", "pid": 12}),
        replace(SESSION, session_id="new", owner=None),
        replace(SESSION, session_id="stored", owner=None, waiting=0),
    ]
    seen, workloads = {"lab-3#11": 0.3, "lab-4#7": 1.0}, {"lab-3#11": Workload(0.3, 0.99, overloaded=True)}
    busy = WorkerStatus("lab-3#11", 2, 5, 0.3, "cache:6379/0", 0.3, 0.99, overloaded=True)
    assert status_of("cache:6379/0", seen, workloads, 4, sessions) == FleetStatus(
        (busy, WorkerStatus("lab-4#7", 0, 0, 1.0, "cache:6379/0")),
        elsewhere=1,
        sleeping=4,
        unowned=1,
        sessions=(
            SessionStatus("by hand", "lab-3#12", 2, "cache:6379/0"),
            SessionStatus("monday", "lab-3#11", 2, "cache:6379/0"),
            SessionStatus("new", None, 2, "cache:6379/0"),
            SessionStatus("stored", None, 0, "cache:6379/0"),
            SessionStatus("tuesday", "lab-3#11", 3, "cache:6379/0"),
        ),
    )


@pytest.mark.engines
@pytest.mark.slow
async def test_the_command_shows_a_worker(
    start_worker: StartWorker, fleet: Fleet, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = start_worker()
    await ready(worker)
    await fleet.say("monday")
    await fleet.owned_by(worker, sessions=["monday"])
    await fleet.hears("monday")
    monkeypatch.setenv("CONTEXT_BUILDER_REDIS_URL", redis_server.url)
    shown = await _invoked("fleet", "status", "--json")
    (one,) = orjson.loads(shown)["workers"]
    server = f"127.0.0.1:{redis_server.port}/0"
    assert orjson.loads(shown)["sessions"] == [
        {"session_id": "monday", "owner": one["worker"], "waiting": 0, "server": server}
    ]
    assert (one["server"], one["overloaded"]) == (server, False)
    assert one["worker"].endswith(f"#{worker.process.pid}")
    assert one["sessions"] == 1
    assert "asleep" in await _invoked("fleet", "status")
    assert "monday" in await _invoked("fleet", "status", "--sessions")


async def _invoked(*arguments: str) -> str:
    import asyncio

    result = await asyncio.to_thread(CliRunner().invoke, cli.app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout
