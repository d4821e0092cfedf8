"""A process whose clock is a month off deletes nothing of other sessions."""

from __future__ import annotations

import os
import time
from pathlib import Path

import orjson
import pytest

from context_builder.session.keys import SLEEPERS, Keys
from tests.fleet.conftest import StartWorker
from tests.fleet.watching import Fleet, ready
from tests.services.daemon import ROOT, Daemon
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.engines, pytest.mark.slow]

NAMES = ["monday", "tuesday", "wednesday"]
FAST = {"session_sleep": 1.2, "silence_threshold": 0.5, "raw_buffer_time_window": 0.3, "poll_interval": 0.1}


DAY = 86_400


def clock(folder: Path, days: int) -> dict[str, str]:
    """Settings of a process of its own, whose clock is off by so many days."""
    shifted = f"import time\nright = time.time\ntime.time = lambda: right() + {days * DAY}\n"
    (folder / "sitecustomize.py").write_text(shifted, encoding="utf-8")
    return {"pythonpath": f"{folder}{os.pathsep}{ROOT}"}


async def asleep(fleet: Fleet) -> bool:
    return bool(await fleet.redis.zcard(SLEEPERS) == len(NAMES))


@pytest.mark.parametrize("days", [30, -30])
async def test_a_sweep_by_a_wrong_clock_deletes_nothing_that_is_to_stay(
    start_worker: StartWorker,
    fleet: Fleet,
    redis_server: RedisServer,
    migrated_url: str,
    tmp_path: Path,
    days: int,
) -> None:
    worker = start_worker(**FAST, database_url=migrated_url)
    await ready(worker)
    await fleet.say(*NAMES)
    await fleet.hears(*NAMES)
    await wait_until(lambda: asleep(fleet), "all sleep, and are summarized")
    lasting = [key for name in NAMES for key in (Keys(name).state, Keys(name).checkpoint)]
    assert await fleet.redis.exists(*lasting) == len(lasting)
    folder = tmp_path / "sweeping"
    folder.mkdir()
    kept = {"redis_url": redis_server.url, "database_url": migrated_url, "session_retention": DAY}
    with Daemon(folder, "run", "sweeping", **kept, **clock(folder, days)) as terminal:
        await wait_until(lambda: terminal.is_ready, "it has swept at its start")
        await fleet.say("sweeping")
        await fleet.hears("sweeping")
        state = orjson.loads(await fleet.redis.get(Keys("sweeping").state))
        assert abs(state["updated_at"] - time.time() - days * DAY) < DAY, "its clock is wrong"
        assert "sweep.done" not in terminal.output
    assert await fleet.redis.exists(*lasting) == len(lasting)
