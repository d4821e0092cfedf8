"""Owners of a session whose Redis commands wait to be let through one by one, and a Redis that can be put back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from redis import Redis as SyncRedis
from redis.asyncio import Redis

from context_builder.errors import LeaseLost, SessionOwned, StoreUnavailable
from context_builder.memory.memory import TenantMemory
from context_builder.session.config import SessionConfig
from context_builder.session.host import SessionHost
from context_builder.session.jobs import Dispatch
from context_builder.session.session import Session, SessionDependencies
from context_builder.session.store.scripts import script
from context_builder.storage.multiplexed import MultiplexedRedis
from context_builder.storage.redis import client_for
from context_builder.testing import InMemoryArchive, InMemoryStore, ManualClock, StubAnalyst
from tests.session.saying import points_of, words

HOUR = 3600.0
BUFFERED = 3
"""So many messages are published; more are pending."""

SETTLING = 30
"""Turns of the event loop in which a coroutine whose command was answered certainly comes to its next one."""

LOAD: Final = "load"
"""Name of the command that reads a session to continue it."""


class Fate(Enum):
    """What becomes of a command and its answer."""

    ANSWERED = "answered"
    ANSWER_LOST = "answer lost"
    NEVER_SENT = "never sent"
    LATE = "carried out later, when nobody waits for it"


@dataclass
class Command:
    """A command that waits to be let through."""

    name: str
    fate: asyncio.Future[Fate]
    carry_out: Callable[[], Awaitable[Any]]
    over: asyncio.Event


class Gate:
    """Where an owner's commands wait."""

    def __init__(self) -> None:
        self.waiting: list[Command] = []
        self.late: list[Command] = []
        self.closed = False

    def close(self) -> None:
        """Let nothing through any more."""
        self.closed = True
        for command in self.waiting:
            command.fate.cancel()

    async def passing(self, name: str, carry_out: Callable[[], Awaitable[Any]]) -> Any:
        if self.closed:
            raise asyncio.CancelledError
        command = Command(name, asyncio.get_running_loop().create_future(), carry_out, asyncio.Event())
        self.waiting.append(command)
        try:
            fate = await command.fate
            if fate in (Fate.NEVER_SENT, Fate.LATE):
                if fate is Fate.LATE:
                    self.late.append(command)
                raise ConnectionError(fate.value)
            answer = await carry_out()
            if fate is Fate.ANSWER_LOST:
                raise ConnectionError(fate.value)
            return answer
        finally:
            command.over.set()
            if command in self.waiting:
                self.waiting.remove(command)


def stepped(client: Redis, gate: Gate) -> Redis:
    """The client, its commands behind the gate."""
    execute = client.execute_command
    load = script(client, "load").digest

    async def gated(*args: Any, **options: Any) -> Any:
        name = LOAD if load in args else str(args[0])
        return await gate.passing(name, lambda: execute(*args, **options))

    client.execute_command = gated  # type: ignore[method-assign]
    return client


class Owner:
    """A process that runs session monday, or wants to, ``hosted`` or by itself; ``left`` is why it no longer does."""

    STOPPED: Final = RuntimeError("stopped")

    def __init__(self, url: str, number: int, *, hosted: bool) -> None:
        self.number = number
        self.gate = Gate()
        self.left: Exception | None = None
        self.ready = False
        self._client = client_for(url)
        analyst = StubAnalyst()
        memory = TenantMemory(InMemoryStore(), "lab")
        parts = SessionDependencies(analyst, analyst, InMemoryArchive(), words, ManualClock(), memory)
        rules = SessionConfig(
            lease=HOUR, conversation_state_ttl=HOUR, buffer_max=BUFFERED, feed_memory=True, summary_budget=1_000_000
        )
        self._commands = stepped(MultiplexedRedis(self._client) if hosted else self._client, self.gate)
        self._host = SessionHost(self._commands, rules) if hosted else None
        self.session = Session(self._host or self._commands, "monday", rules, parts)
        self._feeding: asyncio.Task[None] | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._busy: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        return self._busy is not None and not self._busy.done()

    @property
    def has_read(self) -> bool:
        """Whether deliveries wait to be applied and committed."""
        return not self.session._events.empty()

    def start(self, *, takeover: bool) -> None:
        self._do(self._start(takeover))

    def pushed(self) -> None:
        """Hear that something was pushed to the input."""
        if self.session._hosted:
            self.session._hosted.arrived.set()

    def tick(self) -> None:
        """Begin what is done at a tick: a commit, or a host's refresh, beside which a commit may begin."""
        if self._host is None:
            self.turn()
        elif self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh(self._host))

    async def _refresh(self, host: SessionHost) -> None:
        hosted = self.session._hosted
        assert hosted
        hosted.is_at_rest = not self.busy
        with contextlib.suppress(StoreUnavailable):  # it is tried again at the next tick
            await host._refresh_batch([hosted])

    def turn(self) -> None:
        """Apply what was read, and commit."""
        self._do(self._turn())

    def summarize(self) -> None:
        """Summarize a part of what there is, and commit."""
        self._do(self._summarize())

    def stop(self) -> None:
        self.session.stop()
        self._do(self._leave(self.STOPPED))

    async def _start(self, takeover: bool) -> None:
        await self.session.startup(takeover=takeover, wait=False)
        self.ready = True
        self._feeding = asyncio.create_task(self.session._inbox.feed(self.session._events.put_nowait))

    async def _turn(self) -> None:
        while self.has_read:
            self.session._apply(self.session._events.get_nowait())
        await self.session._commit()

    async def _summarize(self) -> None:
        session, conversation = self.session, self.session.conversation
        dispatch = Dispatch(conversation, session._jobs, session._store, session._record, session._dependencies.clock)
        conversation.close()
        with contextlib.suppress(StoreUnavailable):
            work = conversation.next_summary_task(await dispatch._pending())
            if work is not None:
                conversation.finish(work, points_of(work), session._now())
        await self._turn()

    async def _leave(self, why: Exception) -> None:
        if self._feeding is not None:
            self._feeding.cancel()
        self.left = why
        if self.ready:
            await self.session.shutdown()

    def _do(self, what: Coroutine[Any, Any, None]) -> None:
        async def guarded() -> None:
            try:
                await what
            except (LeaseLost, SessionOwned) as why:
                await self._leave(why)

        self._busy = asyncio.create_task(guarded())

    async def let_through(self, which: int = 0, fate: Fate = Fate.ANSWERED) -> str:
        """Let a waiting command through; its name."""
        command = self.gate.waiting[which]
        command.fate.set_result(fate)
        await command.over.wait()
        await settle()
        self._raise()
        return command.name

    async def carry_out_late(self) -> None:
        with contextlib.suppress(Exception):
            await self.gate.late.pop(0).carry_out()

    async def die(self) -> None:
        """End as a killed process does: nothing more is sent."""
        self.gate.close()
        for task in (self._feeding, self._busy, self._refreshing):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, LeaseLost, SessionOwned):
                    await task
        await self._commands.aclose()
        await self._client.aclose()

    def _raise(self) -> None:
        for task in (self._feeding, self._busy, self._refreshing):
            if task is not None and task.done() and not task.cancelled():
                task.result()


async def settle() -> None:
    """Let every coroutine come to where it waits."""
    for _ in range(SETTLING):
        await asyncio.sleep(0)


class TimelessLoop(asyncio.SelectorEventLoop):
    """An event loop in which no time limit ever passes."""

    def time(self) -> float:
        return 0.0


Copy = list[tuple[bytes, int, bytes]]


def copy_of(redis: SyncRedis) -> Copy:
    """All keys, with their milliseconds to live."""
    keys: Any = redis.keys()
    return [(key, max(0, int(redis.pttl(key))), redis.dump(key)) for key in keys]  # type: ignore[misc]


def put_back(redis: SyncRedis, copy: Copy) -> None:
    """Let Redis be as it was."""
    with redis.pipeline(transaction=True) as pipe:
        pipe.flushall()
        for key, ttl, value in copy:
            pipe.restore(key, ttl, value)
        pipe.execute()
