"""When a lease's holder provably died, and when that cannot be known."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest

from context_builder.session.store import lease as holder
from context_builder.session.store.lease import has_died, this_holder
from tests.services.waiting import wait_until

SCRIPT = (
    "from context_builder.session.store.lease import *; import orjson; print(orjson.dumps(this_holder(0.0)).decode())"
)


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """Another process that has told who it is and waits to be let go."""
    with started(Path(sys.executable)) as running:
        yield running
        running.kill()


def started(python: Path) -> subprocess.Popen[bytes]:
    command = [str(python), "-c", f"{SCRIPT}; import sys; sys.stdout.flush(); input()"]
    root = Path(holder.__file__).parents[3]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": ":".join([str(root), *sys.path]), "PYTHONHOME": sys.base_prefix},
    )


def told(running: subprocess.Popen[bytes]) -> dict[str, Any]:
    """What the process wrote into its lease."""
    assert running.stdout is not None
    written: dict[str, Any] = orjson.loads(running.stdout.readline())
    return written


def test_a_living_process_has_not_died(process: subprocess.Popen[bytes]) -> None:
    assert not has_died(told(process))
    assert not has_died(orjson.loads(orjson.dumps(this_holder(0.0))))


def test_a_process_that_is_gone_has(process: subprocess.Popen[bytes]) -> None:
    lease = told(process)
    process.kill()
    process.wait()
    assert has_died(lease)


async def test_a_process_that_nobody_has_waited_for_has(process: subprocess.Popen[bytes]) -> None:
    lease = told(process)
    process.kill()
    seen = psutil.Process(process.pid)
    await wait_until(lambda: seen.status() == psutil.STATUS_ZOMBIE, "it is a zombie")
    assert has_died(lease)


def test_a_process_whose_id_another_has_now_has() -> None:
    mine = this_holder(0.0)
    assert has_died({**mine, "started": mine["started"] - 1})


def test_a_living_process_that_proc_hides_has_not(
    process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = told(process)

    def hidden(pid: int) -> float:
        raise psutil.NoSuchProcess(pid)

    def anothers(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(holder, "_started", hidden)
    assert not has_died(lease)
    with monkeypatch.context() as patched:
        patched.setattr(os, "kill", anothers)
        assert not has_died(lease)
    process.kill()
    process.wait()
    assert has_died(lease)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the clock tells when a process began")
def test_setting_the_clock_does_not_kill(process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    lease = told(process)
    true = psutil.Process.create_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: true(self) + 3600.0)
    assert not has_died(lease)
    assert not has_died(this_holder(0.0))


@pytest.mark.engines
@pytest.mark.skipif(sys.platform != "linux", reason="reads what only Linux writes")
def test_a_process_may_be_called_anything(tmp_path: Path) -> None:
    odd = tmp_path / "a) R 1 (b c"
    shutil.copy(Path(sys.executable).resolve(), odd)
    with started(odd) as running:
        lease = told(running)
        assert (lease["pid"], has_died(lease)) == (running.pid, False)
        running.kill()
    assert has_died(lease)


@pytest.mark.parametrize("changed", [{"boot": "another"}, {"pid_namespace": "pid:[1]"}, {"boot": ""}, {"boot": None}])
def test_of_another_boot_or_process_namespace_nothing_is_known(changed: dict[str, Any]) -> None:
    assert not has_died({**this_holder(0.0), "started": 0, **changed})


@pytest.mark.parametrize(
    "changed",
    [{"pid": "x"}, {"pid": None}, {"pid": -5}, {"started": None}, {"started": "then"}, {"started": []}],
)
def test_of_a_holder_that_makes_no_sense_nothing_is_known(changed: dict[str, Any]) -> None:
    assert not has_died({**this_holder(0.0), **changed})


def test_of_a_holder_that_says_too_little_nothing_is_known() -> None:
    mine = this_holder(0.0)
    assert not any(has_died({n: v for n, v in mine.items() if n != name}) for name in ("pid", "started", "boot"))
    assert not has_died({})
