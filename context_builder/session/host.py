"""A host does the periodic work of all sessions of a process together, and hears what is pushed to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from redis.asyncio import Redis

from context_builder.errors import StoreError, StoreUnavailable
from context_builder.session.arrivals import Arrivals
from context_builder.session.config import SessionConfig
from context_builder.session.keys import Keys
from context_builder.session.store.deliveries import ListReader
from context_builder.session.store.scripts import script
from context_builder.storage.multiplexed import MultiplexedRedis
from context_builder.storage.redis_availability import translated, until_available
from context_builder.values import value

log = structlog.get_logger(__name__)

ROUND_SECONDS: Final = 0.05
"""Time between rounds, in each of which the sessions are refreshed that are due."""

BATCH: Final = 64
"""Sessions refreshed in one script, which holds up Redis for about a millisecond."""

RENEWALS: Final = 5
"""Renewals of a lease in the time that it lasts."""

STARTS: Final = 48
"""Sessions that may read their checkpoints at the same time."""


@value
class Refresh:
    """What a session at rest refreshes, only while Redis has its ``lease`` and this commit."""

    lease: bytes
    revision: int
    by: bytes
    conversation_state: bytes


@dataclass(eq=False, slots=True)
class HostedSession:
    """Joins a session to its host.

    ``describe`` returns what to refresh, or None while a commit is due or under way, which does the same.
    ``refreshed`` is called when Redis has it, with 1 if deliveries wait in the input and 0 if not; ``attend`` when the
    session has to commit, to find out what is wrong.
    ``arrived`` is set when its input may have something in it. ``due`` is the event loop's time of the next refresh,
    and ``silent_from`` the one at which the conversation falls silent. The session counts the ``commits`` that it has
    begun of its own, and ``is_at_rest`` while it waits for something to happen: then alone it is refreshed.
    """

    keys: Keys
    describe: Callable[[], Refresh | None]
    refreshed: Callable[[int], None]
    attend: Callable[[], None]
    host: SessionHost
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    due: float = field(default=float("inf"), init=False)
    silent_from: float = field(default=0.0, init=False)
    commits: int = field(default=0, init=False)
    is_at_rest: bool = field(default=False, init=False)
    renew_at: float = field(default=0.0, init=False)
    script_keys: tuple[str, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        keys = self.keys
        self.script_keys = (
            *(keys.owner, keys.checkpoint, keys.conversation, keys.state),
            *(keys.outbox, keys.memory_outbox, keys.control, keys.input),
        )

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Let the host refresh the session inside the context, while it waits for something to happen."""
        self.is_at_rest = True
        yield
        self.is_at_rest = False

    def committed(self, tick: float, silent_in: float) -> None:
        """Note that Redis has everything: the next refresh is due after ``tick`` seconds, or when silence begins."""
        now = asyncio.get_running_loop().time()
        self.silent_from = now + silent_in
        self.put_off(now, tick)

    def put_off(self, now: float, tick: float) -> None:
        """Let the next refresh be due after ``tick`` seconds, or when silence begins."""
        self.due = min(now + tick, self.silent_from) if self.silent_from > now else now + tick


class SessionHost:
    """Runs what is periodic for all sessions registered with it, over a few connections.

    ``client`` and ``list_reader`` are what its sessions are to use, and ``arrivals`` hear of every push. Open it with
    :func:`open_host`.
    """

    def __init__(self, client: Redis, rules: SessionConfig) -> None:
        self.client = client
        self.list_reader = ListReader(client)
        self.starting = asyncio.Semaphore(STARTS)
        self._rules = rules
        self._sessions: dict[str, HostedSession] = {}
        self._refresh = script(client, "refresh")
        self.arrivals = Arrivals(client, self._unread, self._arrived)

    @contextmanager
    def hosting(self, session: HostedSession) -> Iterator[None]:
        """Look after a session inside the context."""
        self._sessions[session.keys.input] = session
        session.arrived.set()
        try:
            yield
        finally:
            if self._sessions.get(session.keys.input) is session:
                del self._sessions[session.keys.input]

    async def run(self) -> None:
        """Look after the sessions, for ever."""
        async with asyncio.TaskGroup() as tasks:
            for each in (self.arrivals.listen(), self.arrivals.probe(), self.arrivals.ask(), self._keep_fresh()):
                tasks.create_task(each, name="session host")

    def _unread(self) -> list[str]:
        return [key for key, session in self._sessions.items() if not session.arrived.is_set()]

    def _arrived(self, key: str) -> bool:
        """Note that the list was pushed to; return whether it is the input of a session here."""
        session = self._sessions.get(key)
        if session is None:
            return False
        session.arrived.set()
        return True

    async def _keep_fresh(self) -> None:
        while True:
            now = asyncio.get_running_loop().time()
            due = sorted((each for each in self._sessions.values() if each.due <= now), key=lambda each: each.due)
            for first in range(0, len(due), BATCH):
                async for attempt in until_available():
                    with attempt:
                        await self._refresh_batch(due[first : first + BATCH])
            await asyncio.sleep(ROUND_SECONDS)

    async def _refresh_batch(self, due: Sequence[HostedSession]) -> None:
        rules, now = self._rules, asyncio.get_running_loop().time()
        keys: list[str] = []
        args: list[Any] = [int(1000 * t) for t in (rules.lease, rules.state_ttl, rules.conversation_state_ttl)]
        described: list[tuple[HostedSession, int]] = []
        for session in due:
            refresh = session.describe() if session.is_at_rest else None
            if refresh is None:
                continue
            described.append((session, session.commits))
            keys += session.script_keys
            renew = b"1" if session.renew_at <= now else b""
            args += (refresh.lease, refresh.revision, refresh.by, refresh.conversation_state, renew)
        if not described:
            return
        try:
            async with translated():
                verdicts = await self._refresh(keys=keys, args=args)
        except StoreUnavailable:
            raise
        except StoreError as error:  # each session's own commit tells what is wrong
            log.error("host.refresh_refused", error=str(error))
            verdicts = [1] * len(described)
        for (session, commits), verdict in zip(described, verdicts, strict=True):
            # A commit that began meanwhile tells the session more than this verdict, which may be of the time before.
            if session.commits != commits:
                continue
            session.put_off(now, rules.tick)
            if verdict == 1:
                session.attend()
                continue
            session.refreshed(1 if verdict else 0)
            if session.renew_at <= now:
                session.renew_at = now + rules.lease / RENEWALS
            if verdict:
                session.arrived.set()


@asynccontextmanager
async def open_host(client: Redis, rules: SessionConfig) -> AsyncIterator[SessionHost]:
    """Open a host whose sessions share a few connections of the client's pool."""
    shared = MultiplexedRedis(client)
    host = SessionHost(shared, rules)
    try:
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(host.run(), name="session host")
            try:
                yield host
            finally:
                running.cancel()
    finally:
        await shared.aclose()
