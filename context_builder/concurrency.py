"""Work side by side: who waits takes fair turns, and work that nobody waits for is done in the background."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

import structlog

from context_builder.errors import ContextBuilderError

log = structlog.get_logger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

SWITCH_INTERVAL: Final = 0.0002
"""Seconds after which what a thread computes makes way for the loop (Python's default is 0.005)."""

_BESIDE: Final = ThreadPoolExecutor(2, "beside the loop")


async def beside_loop(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that computes for long in a thread, as ``asyncio.to_thread`` does, but two such at a time.

    Threads do not compute any faster side by side, and each time that the loop goes on, it waits for all of them: a
    call of C, such as one that reads JSON, is not interrupted. What may take seconds does not belong here: all wait.
    """
    call = partial(copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_BESIDE, call)


share: Final[ContextVar[str]] = ContextVar("share", default="")
"""Name of the share whose turns a task uses: its tenant."""


class FairTurns:
    """Lets ``places`` tasks work at a time, each within ``async with``, but of one share no more than ``most``.

    Whose turn is next goes round the shares that wait; within one, who came first. A tenant with a thousand sessions
    that wait so leaves another one, with a single session, every second turn.
    """

    def __init__(self, places: int = 1, most: int | None = None) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._free = places
        self._most = most
        self._working = Counter[str]()

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *_: object) -> None:
        self.release()

    async def acquire(self) -> None:
        """Wait for a turn, which :meth:`release` ends."""
        if self._free and self._may_work(share.get()):
            self._begin(share.get())
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(share.get(), deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give the turn to whose it is next."""
        self._working -= Counter([share.get()])  # which forgets who has none
        self.add_place()

    def add_place(self) -> None:
        """Let one more task work at a time."""
        self._free += 1
        while (name := next(filter(self._may_work, self._waiting), None)) is not None:
            queue = self._waiting.pop(name)
            turn = queue.popleft()
            if queue:
                self._waiting[name] = queue  # behind the other shares
            if not turn.done():
                self._begin(name)
                turn.set_result(None)
                return

    @property
    def is_full(self) -> bool:
        """Return whether nobody else may work now."""
        return not self._free

    def _may_work(self, name: str) -> bool:
        return self._most is None or self._working[name] < self._most

    def _begin(self, name: str) -> None:
        self._free -= 1
        self._working[name] += 1


class Background:
    """Runs at most ``most`` coroutines beside the turns, each for at most ``timeout`` seconds; more are let go.

    Those that wait for turns of their own have no ``timeout`` (None), and bound what they do when it is theirs.
    """

    def __init__(self, *, most: int = 100, timeout: float | None = 30.0) -> None:
        self._most = most
        self._timeout = timeout
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, name: str, coroutine: Coroutine[Any, Any, None]) -> bool:
        """Begin the coroutine now, and return whether there was room for it. Its errors are logged."""
        if len(self._tasks) >= self._most:
            coroutine.close()
            log.warning("background.full", work=name, running=len(self._tasks))
            return False
        task = asyncio.create_task(self._run(name, coroutine), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: coroutine.close())  # which had not begun, if the task was cancelled at once
        return True

    async def drain(self) -> None:
        """Wait until no coroutine is running."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def cancel(self) -> None:
        """Cancel the running coroutines."""
        for task in self._tasks:
            task.cancel()
        await self.drain()

    async def _run(self, name: str, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await coroutine
        except Exception as error:  # noqa: BLE001 nobody waits for this work: the log is where its end is told
            log.warning("background.failed", work=name, error=type(error).__name__)


class TenantBackground:
    """Does ``work`` for tenants, one task of each at a time; ``name`` is that of the work in the log."""

    def __init__(self, name: str, work: Callable[[str], Awaitable[object]]) -> None:
        self._name = name
        self._work = work
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._waiting: set[str] = set()

    def start(self, tenant_id: str) -> None:
        """Do what there is to do for the tenant now."""
        self._waiting.add(tenant_id)
        if tenant_id not in self._tasks:
            self._tasks[tenant_id] = asyncio.create_task(self._run(tenant_id), name=self._name)

    async def watch(self, tenant_id: str, every: float) -> None:
        """Do what there is to do for the tenant now, and every so many seconds what other processes stored; never
        ends."""
        while True:
            self.start(tenant_id)
            await asyncio.sleep(every)

    async def close(self) -> None:
        """Cancel what is under way; it is done when something is stored the next time."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, tenant_id: str) -> None:
        try:
            while tenant_id in self._waiting:
                self._waiting.discard(tenant_id)  # what is stored from now on puts it back
                await self._work(tenant_id)
        except ContextBuilderError as error:
            log.warning("documents.undone", work=self._name, error=type(error).__name__)
        except Exception:  # nobody waits for this: the log is where its end is told
            log.exception("documents.undone", work=self._name)
        finally:
            del self._tasks[tenant_id]


async def answer_within(patience: float, task: asyncio.Task[T]) -> T | None:
    """Return the task's answer if it comes within ``patience`` seconds; the task goes on if not."""
    await asyncio.wait([task], timeout=patience)
    is_answered = task.done() and not task.cancelled() and task.exception() is None
    return task.result() if is_answered else None
