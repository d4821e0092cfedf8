"""What computes for long runs beside the loop, in turns: the loop waits for all that computes at a time."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from threading import Barrier, Event, Semaphore

from context_builder.concurrency import beside_loop
from tests.services.waiting import PATIENCE, wait_until

NAME: ContextVar[str] = ContextVar("name", default="")


async def test_two_functions_compute_at_a_time() -> None:
    met, over, computing = Event(), Event(), Barrier(2)
    most = Semaphore(2)

    def compute() -> int:
        assert most.acquire(blocking=False)
        try:
            if not met.is_set():
                computing.wait(PATIENCE)  # breaks unless there are two
                met.set()
                over.wait(PATIENCE)
            return threading.get_ident()
        finally:
            most.release()

    tasks = [asyncio.create_task(beside_loop(compute)) for _ in range(6)]
    await wait_until(met.is_set, "two of them compute")
    over.set()
    assert threading.get_ident() not in await asyncio.gather(*tasks)


async def test_a_function_beside_the_loop_sees_the_caller_s_context() -> None:
    NAME.set("Ann")
    assert await beside_loop(NAME.get) == "Ann"
