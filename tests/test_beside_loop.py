"""What computes for long runs beside the loop, in turns: the loop waits for all that computes at a time."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from threading import Barrier, Event, Semaphore

from context_builder.concurrency import beside_loop

NAME: ContextVar[str] = ContextVar("name", default="")


async def test_two_functions_compute_at_a_time() -> None:
    over, computing = Event(), Barrier(2)
    most = Semaphore(2)

    def compute() -> int:
        assert most.acquire(blocking=False)
        try:
            if not over.is_set():
                computing.wait(10)  # breaks unless there are two
                over.wait(10)
            return threading.get_ident()
        finally:
            most.release()

    tasks = [asyncio.create_task(beside_loop(compute)) for _ in range(6)]
    await asyncio.sleep(0.1)
    over.set()
    assert threading.get_ident() not in await asyncio.gather(*tasks)


async def test_a_function_beside_the_loop_sees_the_caller_s_context() -> None:
    NAME.set("Ann")
    assert await beside_loop(NAME.get) == "Ann"
