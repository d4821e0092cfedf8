"""Work in a process of its own: answered, raised, or ended in time, and others' turns come."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Iterator

import pytest

from context_builder.analysis.processes import BoundedProcess, BoundedProcesses, TooBusy, TookTooLong
from context_builder.concurrency import share
from context_builder.errors import PolicyError
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines


@pytest.fixture
def process() -> Iterator[BoundedProcess]:
    made = BoundedProcess(0.5)
    yield made
    made.close()


def busy_in_c(length: int) -> bool:
    return re.fullmatch("(a*)*b", "a" * length) is not None


def refuse() -> None:
    raise PolicyError("house", 2, 3, "no")


async def test_a_call_is_answered_elsewhere(process: BoundedProcess) -> None:
    assert await process(pow, 2, 10) == 1024
    assert await process(os.getpid) != os.getpid()


async def test_what_a_call_raises_is_raised(process: BoundedProcess) -> None:
    with pytest.raises(PolicyError) as raised:
        await process(refuse)
    assert (raised.value.line, raised.value.column) == (2, 3)


async def test_what_takes_too_long_is_ended_and_the_next_is_answered(process: BoundedProcess) -> None:
    for _ in range(2):
        with pytest.raises(TookTooLong):
            await process(busy_in_c, 60)
        assert await process(pow, 2, 10) == 1024


async def test_a_busy_machine_is_told_from_work_that_takes_too_long() -> None:
    impatient = BoundedProcess(0.01)
    with pytest.raises(TooBusy):
        await impatient(time.sleep, 0.2)
    impatient.close()


async def test_who_gives_up_leaves_the_process_to_others(process: BoundedProcess) -> None:
    waiting = asyncio.create_task(process(time.sleep, 0.2))
    await asyncio.sleep(0)
    other = asyncio.create_task(process(pow, 2, 10))
    waiting.cancel()
    assert await other == 1024


async def test_what_is_long_of_one_tenant_is_not_waited_for_by_another() -> None:
    processes = BoundedProcesses(2, 0.5)
    await asyncio.gather(processes(pow, 2, 10), processes(pow, 2, 10))  # which starts the other one, too
    await wait_until(lambda: len(processes._free) == 2, "both processes are there")
    share.set("large")
    waiting = [asyncio.create_task(processes(busy_in_c, 60)) for _ in range(2)]
    await asyncio.sleep(0)
    share.set("small")
    assert await processes(pow, 2, 10) == 1024
    assert not waiting[1].done()  # its tenant has its place
    for one in waiting:
        with pytest.raises(TookTooLong):
            await one
    processes.close()


async def test_a_process_that_was_killed_is_replaced(process: BoundedProcess) -> None:
    number = await process(os.getpid)
    os.kill(number, 9)
    with pytest.raises(TookTooLong):
        await process(pow, 2, 10)
    assert await process(pow, 2, 10) == 1024
