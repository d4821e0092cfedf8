"""A process whose clock is a month off deletes nothing of other sessions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from context_builder.session.keys import SLEEPERS, Keys
from tests.fleet.conftest import StartWorker
from tests.fleet.watching import Fleet, ready
from tests.services.daemon import Daemon
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.engines, pytest.mark.slow]

NAMES = ["monday", "tuesday", "wednesday"]
FAST = {"session_sleep": 1.2, "silence_threshold": 0.5, "raw_buffer_time_window": 0.3, "poll_interval": 0.1}


def clock(offset: str) -> dict[str, str]:
    """Settings of a process whose clock is off by so much, such as ``+30d``; skipped where no library makes it so."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not found:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no libfaketime: `apt-get install libfaketime`")
    return {"ld_preload": str(found[0]), "faketime": offset, "dont_fake_monotonic": "1"}


async def asleep(fleet: Fleet) -> bool:
    return bool(await fleet.redis.zcard(SLEEPERS) == len(NAMES))


@pytest.mark.parametrize("offset", ["+30d", "-30d"])
async def test_a_sweep_by_a_wrong_clock_deletes_nothing_that_is_to_stay(
    start_worker: StartWorker,
    fleet: Fleet,
    redis_server: RedisServer,
    migrated_url: str,
    tmp_path: Path,
    offset: str,
) -> None:
    worker = start_worker(**FAST, database_url=migrated_url)
    await ready(worker)
    await fleet.say(*NAMES)
    await fleet.hears(*NAMES)
    await wait_until(lambda: asleep(fleet), "all sleep, and are summarized", timeout=40)
    lasting = [key for name in NAMES for key in (Keys(name).state, Keys(name).checkpoint)]
    assert await fleet.redis.exists(*lasting) == len(lasting)
    folder = tmp_path / "sweeping"
    folder.mkdir()
    day = {"redis_url": redis_server.url, "database_url": migrated_url, "session_retention": 86_400}
    with Daemon(folder, "run", "sweeping", **day, **clock(offset)) as terminal:
        await wait_until(lambda: terminal.is_ready, "it has swept at its start", timeout=30)
        await fleet.say("sweeping")
        await fleet.hears("sweeping")
        assert "sweep.done" not in terminal.output
    assert await fleet.redis.exists(*lasting) == len(lasting)
