"""Text analysis in a process of its own, for a process with many sessions: there, threads would hold up the loop."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from threading import Event, Lock, Thread
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

NICE: Final = 5
"""The loops that messages wait for come first."""

FROZEN_SECONDS: Final = 15.0
"""Time in which no function was done, though each takes some milliseconds."""

_LOOK_SECONDS: Final = 1.0


class AnalysisProcess(Executor):
    """Runs functions one after the other in a process that starts at the first, and again after it was killed.

    What was under way when it was killed raises ``BrokenProcessPool``. One that stands still for :data:`FROZEN_SECONDS`
    is killed. The process ends with ``shutdown``, and by itself when the one that started it is gone.
    """

    def __init__(self) -> None:
        self._pool = _pool()
        self._lock = Lock()
        self._under_way = 0
        self._moved_at = 0.0
        self._over = Event()
        self._watcher: Thread | None = None

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        pool = self._pool
        try:
            future = pool.submit(fn, *args, **kwargs)
        except BrokenProcessPool:
            with self._lock:
                if self._pool is pool:
                    self._pool = _pool()
            future = self._pool.submit(fn, *args, **kwargs)
        self._count(1)
        future.add_done_callback(lambda _: self._count(-1))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 as Executor has it
        if not self._over.is_set():  # it is watched until it has ended
            self._pool.shutdown(wait, cancel_futures=cancel_futures)
            self._over.set()

    def _count(self, more: int) -> None:
        with self._lock:
            if more < 0 or not self._under_way:
                self._moved_at = time.monotonic()
            self._under_way += more
            if self._watcher is None:
                self._watcher = Thread(target=self._watch, name="analysis watcher", daemon=True)
                self._watcher.start()

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            with self._lock:
                is_frozen = self._under_way > 0 and time.monotonic() - self._moved_at > FROZEN_SECONDS
                processes = [*(getattr(self._pool, "_processes", None) or {}).values()] if is_frozen else []
                self._moved_at = time.monotonic() if is_frozen else self._moved_at
            for process in processes:
                process.kill()


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
