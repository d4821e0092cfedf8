"""``fleet --demo`` shows that nothing is lost, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.engines

COMMAND = [sys.executable, "-m", "context_builder", "fleet", "--demo", "--sessions", "10", "--json"]


def demo(tmp_path: Path, *options: str) -> subprocess.Popen[str]:
    """The demonstration, whose folder is made in this test's."""
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    return subprocess.Popen(
        [*COMMAND, *options], cwd=tmp_path, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def left_behind(tmp_path: Path) -> list[str]:
    """The processes whose working folder or command names the test's folder."""
    found = []
    for process in psutil.process_iter():
        try:
            described = " ".join([process.cwd(), *process.cmdline(), *process.environ().values()])
        except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
        if str(tmp_path) in described:
            found.append(described)
    return found


def test_sessions_move_and_nothing_is_lost(tmp_path: Path) -> None:
    process = demo(tmp_path, "--seconds", "5")
    output, told = process.communicate(timeout=120)
    outcome = json.loads(output)
    assert process.returncode == 0, told
    assert outcome["whole"]
    assert outcome["said"] >= 10
    assert set(outcome["elsewhere_after"]) == {"worker 1 killed", "worker 2 left"}
    run = [int(count) for count in re.findall(r"with (\d+) sessions", told)]
    assert len(run) == 2
    assert outcome["moved"] >= sum(run) > 0
    assert left_behind(tmp_path) == []


def test_ctrl_c_ends_it_all(tmp_path: Path) -> None:
    process = demo(tmp_path, "--seconds", "60")
    assert process.stderr is not None
    while "people begin" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert left_behind(tmp_path) == []
