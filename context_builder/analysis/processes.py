"""Functions run in processes of their own, so that the event loop goes on.

A thread would not do: much of it is one call of C or Rust, which neither lets the loop run nor can be stopped.
:class:`AnalysisProcess` is an executor for many short calls, text analysis for a process with many sessions, and ended
where it stands still. :class:`BoundedProcess` is for calls that may take long, with anybody's text: each has a
limit, after which it is ended.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Event, Lock, Thread
from typing import Any, Final, NamedTuple, ParamSpec, Protocol, TypeVar

from context_builder.concurrency import FairTurns

P = ParamSpec("P")
T = TypeVar("T")

LIMIT: Final = 5.0
"""Seconds of the processor's time that a call may take, however busy the machine is."""

PATIENCE: Final = 6.0
"""Times that limit, after which a call is ended whatever it does."""

_STARTING: Final = 60.0
"""Seconds in which a process has to be there, on a machine that may be busy."""

_CONTEXT: Final = get_context("spawn")

NICE: Final = 5
"""The loops that messages wait for come first."""

FROZEN_SECONDS: Final = 15.0
"""Time in which no function was done, though each takes some milliseconds."""

_LOOK_SECONDS: Final = 1.0


class TookTooLong(Exception):
    """The call was ended, because it took longer than it may."""


class TooBusy(TookTooLong):
    """The call was ended because the machine did not let it end, whatever it was given; it may succeed later."""


class Runner(Protocol):
    """Runs a function that must not hold up the loop; raises what that raises, or :class:`TookTooLong`."""

    async def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...


in_thread: Final[Runner] = asyncio.to_thread
"""Runs a function in a thread, where nobody else is waiting: it is not bounded."""


class Helpers(NamedTuple):
    """Run what must not hold up the loop: ``usual`` work and ``long`` work, each where it does not wait for the other.

    Else a few long texts of one tenant would make every tenant wait, for decisions and short texts, too.
    """

    usual: Runner = in_thread
    long: Runner = in_thread


IN_THREADS: Final = Helpers()


class BoundedProcess:
    """Runs functions of modules, one after the other, each for at most ``limit`` seconds of processor time; tenants
    take turns.

    The process starts at the first call, and again after one was ended; it does ``begin`` first, which is not part of
    any call's time.
    """

    def __init__(self, limit: float = LIMIT, begin: Callable[[], object] | None = None) -> None:
        self._limit = limit
        self._begin = begin
        self._turns = FairTurns()
        self._thread = ThreadPoolExecutor(1, "bounded process")
        self._process: Any = None
        self._connection: Connection | None = None

    async def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        async with self._turns:
            answer = asyncio.get_running_loop().run_in_executor(self._thread, self._ask, function, args, kwargs)
            try:
                return await asyncio.shield(answer)
            except asyncio.CancelledError:
                await asyncio.wait({answer})  # the next one's turn comes when the process is free
                raise

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the same while the caller's thread waits, where nobody else asks."""
        value: T = self._ask(function, args, kwargs)
        return value

    def close(self) -> None:
        """End the process, and what it is doing."""
        self._end()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _ask(self, function: Callable[..., T], args: Any, kwargs: Any) -> T:
        connection = self._connection or self._started()
        try:
            connection.send((function, args, kwargs))
            if not connection.poll(PATIENCE * self._limit):
                self._end()
                raise TooBusy(f"ended after {PATIENCE * self._limit:g} s")
            succeeded, result = connection.recv()
        except (EOFError, OSError):
            self._end()
            raise TookTooLong(f"its process ended, after at most {self._limit:g} s of work") from None
        if not succeeded:
            raise result
        value: T = result
        return value

    def _started(self) -> Connection:
        ours, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(
            target=_serve, args=(theirs, os.getpid(), self._limit, self._begin), daemon=True, name="bounded work"
        )
        self._process.start()
        theirs.close()
        if not ours.poll(_STARTING):
            self._process.kill()
            raise TooBusy("its process did not start")
        ours.recv()
        self._connection = ours
        return ours

    def _end(self) -> None:
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if process is not None:
            process.kill()
            process.join()
        if connection is not None:
            connection.close()


class BoundedProcesses:
    """Several :class:`BoundedProcess`, of which a tenant has one at a time: another's long work is not waited for.

    Another one is started once somebody has to wait; until it is there, which takes seconds, turns are taken.
    """

    def __init__(self, places: int, limit: float = LIMIT, begin: Callable[[], object] | None = None) -> None:
        self._all = [BoundedProcess(limit, begin) for _ in range(places)]
        self._free, self._others = self._all[:1], self._all[1:]
        self._turns = FairTurns(1, most=1)
        self._starting: asyncio.Task[None] | None = None

    async def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._turns.is_full and self._others and self._starting is None:
            self._starting = asyncio.create_task(self._start_another(), name="another bounded process")
        async with self._turns:
            process = self._free.pop()
            try:
                return await process(function, *args, **kwargs)
            finally:
                self._free.append(process)

    async def _start_another(self) -> None:
        process = self._others.pop()
        with suppress(TookTooLong):  # whoever uses it starts it again
            await process(os.getpid)
        self._free.append(process)
        self._starting = None
        self._turns.add_place()

    def close(self) -> None:
        """End the processes, and what they are doing."""
        if self._starting is not None:
            self._starting.cancel()
        for process in self._all:
            process.close()


def _serve(connection: Connection, parent: int, limit: float, begin: Callable[[], object] | None) -> None:
    begin_helper(parent)
    if begin is not None:
        begin()
    connection.send("ready")
    while True:
        try:
            function, args, kwargs = connection.recv()
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_PROF, limit)  # whose signal ends the process, also within a call of C
        try:
            answer = (True, function(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  # whoever asked raises it
            answer = (False, error)
        signal.setitimer(signal.ITIMER_PROF, 0)
        connection.send(answer)


class AnalysisProcess(Executor):
    """Runs functions of text analysis one after the other, in a process that starts at the first and again when killed.

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
    return ProcessPoolExecutor(1, _CONTEXT, begin_helper, (os.getpid(),))


def begin_helper(parent: int) -> None:
    """Leave Ctrl-C to the process that started this one, make way for it, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICE)
    Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> Any:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(0)
