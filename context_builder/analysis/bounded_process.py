"""Work that may take long runs in a process of its own, which is killed when it takes too long.

A thread would not do: much of it is one call of C or Rust, which neither lets the event loop run nor can be stopped.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple, ParamSpec, Protocol, TypeVar

from context_builder.analysis.text.process import begin_helper
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


class TookTooLong(Exception):
    """The call was ended, because it took longer than it may."""


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

    The process starts at the first call, and again after one was ended; it does ``begin`` first, which is no part of
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
                raise TookTooLong(f"ended after {PATIENCE * self._limit:g} s")
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
            raise TookTooLong("its process did not start")
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
