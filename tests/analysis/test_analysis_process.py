"""Text analysis in a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from context_builder.analysis import processes as analysis_process
from context_builder.analysis.analyst import SummaryRequest
from context_builder.analysis.processes import NICE, AnalysisProcess
from context_builder.analysis.text.analyst import TextAnalyst
from tests.analysis.text.test_analyst import backlog
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines

PARENT = """
import os, signal
from context_builder.analysis.processes import AnalysisProcess
if __name__ == "__main__":
    print(AnalysisProcess().submit(os.getpid).result(), flush=True)
    signal.pause()
"""


@pytest.fixture
def process() -> Iterator[AnalysisProcess]:
    with AnalysisProcess() as made:
        yield made


async def test_it_finds_what_a_thread_finds(process: AnalysisProcess) -> None:
    here, there = TextAnalyst(), TextAnalyst(process)
    said = backlog(300)
    request = SummaryRequest(said)
    assert await there.extract_keywords(said) == await here.extract_keywords(said)
    assert await there.infer_domains(said) == await here.infer_domains(said)
    assert await there.summarize(request) == await here.summarize(request)
    await asyncio.gather(here.close(), there.close())


def test_it_makes_way_and_leaves_ctrl_c_to_its_parent(process: AnalysisProcess) -> None:
    pid = process.submit(os.getpid).result()
    assert pid != os.getpid()
    assert psutil.Process(pid).nice() == min(psutil.Process().nice() + NICE, 19)
    os.kill(pid, signal.SIGINT)
    assert process.submit(os.getpid).result() == pid


async def test_it_is_started_again_after_it_was_killed(process: AnalysisProcess) -> None:
    first = process.submit(os.getpid).result()
    os.kill(first, signal.SIGKILL)
    assert await wait_until(partial(_works, process), "another process works") != first


def _works(process: AnalysisProcess) -> int:
    try:
        return process.submit(os.getpid).result(20)
    except BrokenProcessPool:  # it was taken in before the end of the process was known
        return 0


def test_it_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    program = tmp_path / "parent.py"
    program.write_text(PARENT)
    parent = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    left = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    with suppress(psutil.NoSuchProcess):
        left.wait(10)


async def test_one_that_stands_still_is_replaced(process: AnalysisProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = process.submit(os.getpid).result()
    monkeypatch.setattr(analysis_process, "FROZEN_SECONDS", 2.0)
    os.kill(frozen, signal.SIGSTOP)
    assert await wait_until(partial(_works, process), "another process works") != frozen
