"""What the demonstration of a fleet tells of a worker that ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from signal import SIGTERM

import pytest
from redis.asyncio import Redis

from context_builder.fleet import demonstration as module
from context_builder.fleet.demonstration import Demonstration, DemonstrationResult, DemoWorker
from context_builder.session.keys import Keys
from tests.services.waiting import wait_until

STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True)\nwhile True: signal.pause()"


@pytest.fixture
def stubborn() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not end when it is told to."""
    process = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


async def test_sessions_that_nobody_takes_over_are_told_and_the_worker_is_killed(
    redis: Redis, tmp_path: Path, stubborn: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SETTLING", 0.3)
    monkeypatch.setattr(module, "STOP_SECONDS", 0.3)
    told: list[str] = []
    demonstration = Demonstration(redis, tmp_path, {}, 2, [("Ida", "yes")], told.append)
    await redis.set(Keys("demo-001").owner, f'{{"pid": {stubborn.pid}}}')
    await redis.set(Keys("demo-002").owner, '{"pid": 1}')
    log = tmp_path / "worker.log"
    log.touch()
    await demonstration._end(DemoWorker("worker 1", stubborn, log, "running"), SIGTERM, "leaving")
    assert told[-1].startswith("1 of its sessions are still with it after 0.")
    await wait_until(lambda: stubborn.poll() is not None, "it is killed")
    result = await demonstration._outcome()
    assert (result.not_taken_over, result.is_whole, result.elsewhere_after) == (1, False, {})


def test_a_demonstration_without_a_loss_is_whole() -> None:
    assert DemonstrationResult(2, 9, 0, 0, 0, 2, {"worker 1 killed": 0.4}).is_whole
