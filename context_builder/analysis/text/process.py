"""Text analysis in a process of its own, for a process with many sessions: there, threads would hold up the loop."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from threading import Lock, Thread
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

NICE: Final = 5
"""The loops that messages wait for come first."""

_LOOK_SECONDS: Final = 1.0


class AnalysisProcess(Executor):
    """Runs functions one after the other in a process that starts at the first, and again after it was killed.

    What was under way when it was killed raises ``BrokenProcessPool``. The process ends with ``shutdown``, and by
    itself when the one that started it is gone.
    """

    def __init__(self) -> None:
        self._pool = _pool()
        self._replacing = Lock()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        pool = self._pool
        try:
            return pool.submit(fn, *args, **kwargs)
        except BrokenProcessPool:
            with self._replacing:
                if self._pool is pool:
                    self._pool = _pool()
            return self._pool.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 as Executor has it
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"), begin_helper, (os.getpid(),))


def begin_helper(parent: int) -> None:
    """Leave Ctrl-C to the process that started this one, make way for it, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICE)
    Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> Any:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(0)
