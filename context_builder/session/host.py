"""A host does the periodic work of all sessions of a process together: it refreshes expiring keys and reads all inputs.

Arrivals tell which of many input lists were pushed to, without a connection for each list.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

import structlog
from redis.asyncio import Redis

from context_builder.errors import StoreError, StoreUnavailable
from context_builder.session.config import SessionConfig
from context_builder.session.keys import Keys
from context_builder.session.store.deliveries import ListReader
from context_builder.session.store.scripts import script
from context_builder.storage.multiplexed import MultiplexedRedis
from context_builder.storage.redis_availability import translated, until_available
from context_builder.values import value

log = structlog.get_logger(__name__)


EVENTS_NEEDED: Final = "El"
"""Flags of ``notify-keyspace-events`` by which Redis announces pushes: events of lists, told by the event's name."""

PROBE_SECONDS: Final = 0.25
"""Time between probes, which tell whether Redis announces pushes."""

MISSED_PROBES: Final = 2
"""Probes without an announcement of any push since, after which Redis is asked instead. Probes are counted and not
seconds, because a process that was late itself has missed none."""

DEAF_AFTER: Final = 2.5
"""Seconds after a start until it is known whether Redis announces pushes."""

ASK_SECONDS: Final = 0.01
"""Least time between two questions to a Redis that announces nothing."""

ASK_SECONDS_EACH: Final = 10e-6
"""Time between two questions for each session, if that is longer together."""

RECONNECT_SECONDS: Final = 0.5

ANSWER_SECONDS: Final = 1.0
"""Time in which a Redis that announces pushes has announced a probe."""

BUSY: Final = 0.6
"""Share of a core above which arrivals are gathered. A message alone takes a worker twice as long as one of thirty that
are read together. Waiting for the core does not count as use of it."""

GATHER_SECONDS: Final = 0.03
"""Time for which arrivals are gathered while the thread uses all of a core; in proportion less while it uses less."""

MEASURED_SECONDS: Final = 0.1
"""Time over which the thread's use of its core is measured."""


class Gathering:
    """Tells for how long to gather arrivals, by the share of a core that the event loop's thread used lately."""

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, used: Callable[[], float] = time.thread_time
    ) -> None:
        self._monotonic = monotonic
        self._used = used
        self._measured = monotonic(), used()
        self._seconds = 0.0

    def seconds(self) -> float:
        """Return the seconds, which are none unless the thread used more than :data:`BUSY`."""
        now = self._monotonic()
        measured_at, used_before = self._measured
        if now - measured_at >= MEASURED_SECONDS:
            used = self._used()
            busy = min(1.0, (used - used_before) / (now - measured_at))
            self._seconds = GATHER_SECONDS * max(0.0, busy - BUSY) / (1 - BUSY)
            self._measured = now, used
        return self._seconds


async def announces_pushes(redis: Redis) -> bool:
    """Return whether this Redis announces pushes, and lets this user hear of them.

    Raises :class:`~context_builder.errors.StoreError`, and where it is away :class:`StoreUnavailable`.
    """
    async with redis.pubsub() as pubsub, translated():
        try:
            async with translated():
                await pubsub.subscribe(_push_channel(redis))
                await pubsub.get_message(timeout=ANSWER_SECONDS)  # that it is subscribed
        except StoreUnavailable:
            raise
        except StoreError:
            return False
        probe = _probe_name()
        await script(redis, "probe")(keys=[probe])
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                async for message in pubsub.listen():
                    if message["data"] == probe.encode():
                        return True
        except TimeoutError:
            pass
    return False


def _push_channel(redis: Redis) -> str:
    """Return the channel on which Redis announces each key that something was pushed to with LPUSH."""
    return f"__keyevent@{redis.connection_pool.connection_kwargs.get('db') or 0}__:lpush"


def _probe_name() -> str:
    """Return the name of a list that serves as a probe: it is pushed to and deleted in one step."""
    return f"context_builder:probe:{uuid4().hex}"


class Arrivals:
    """Calls ``arrived`` with the name of each list that was pushed to; where that returns false, ``elsewhere``.

    While the process is busy, it gathers for a moment what arrives.

    Redis announces pushes where ``notify-keyspace-events`` has ``E`` and ``l`` (or ``A``). Whether it does is found out
    by probes, because CONFIG may be forbidden and a subscription may die without a word. While it does not, Redis is
    asked which of the lists that ``unread`` names are not empty, a hundred times a second.
    """

    def __init__(self, client: Redis, unread: Callable[[], Iterable[str]], arrived: Callable[[str], bool]) -> None:
        self.elsewhere: Callable[[str], None] = lambda _: None
        self._client = client
        self._unread = unread
        self._arrived = arrived
        self._ask = script(client, "arrived")
        self._announce = script(client, "probe")
        self._probe = _probe_name()
        self._missed = MISSED_PROBES
        self._gathering = Gathering()
        self._gathered: dict[str, None] = {}
        self._passing: asyncio.TimerHandle | None = None

    @property
    def are_announced(self) -> bool:
        """Return whether Redis announces pushes."""
        return self._missed < MISSED_PROBES

    async def listen(self) -> None:
        """Pass on what Redis announces, for ever."""
        while True:
            pubsub: Any = self._client.pubsub()
            try:
                async with asyncio.timeout(RECONNECT_SECONDS * 4):
                    await pubsub.subscribe(_push_channel(self._client))
                await self._pass_on(pubsub)
            except Exception as error:  # noqa: BLE001 whatever it is, Redis is asked meanwhile
                log.debug("arrivals.reconnecting", error=type(error).__name__)
            finally:
                self._missed = MISSED_PROBES  # ask from now on, without waiting for probes to be missed
                self._pass_gathered()
                await pubsub.aclose()
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _pass_on(self, pubsub: Any) -> None:
        probe = self._probe.encode()
        while True:
            kind, _, key = await pubsub.parse_response(block=True) or (b"", b"", b"")
            if kind == b"message":
                self._missed = 0
                if key != probe:
                    self._hear(key.decode(errors="replace"))

    def _hear(self, name: str) -> None:
        """Pass the name on, or gather it with those that come within a moment."""
        if self._gathered:
            self._gathered[name] = None
        elif seconds := self._gathering.seconds():
            self._gathered[name] = None
            self._passing = asyncio.get_running_loop().call_later(seconds, self._pass_gathered)
        else:
            self._pass(name)

    def _pass_gathered(self) -> None:
        gathered, self._gathered = self._gathered, {}
        if self._passing:
            self._passing.cancel()
        for name in gathered:
            self._pass(name)

    def _pass(self, name: str) -> None:
        if not self._arrived(name):
            self.elsewhere(name)

    async def probe(self) -> None:
        """Push a probe every :data:`PROBE_SECONDS`, for ever."""
        while True:
            try:
                async with translated():
                    await self._announce(keys=[self._probe])
                self._missed += 1
            except StoreError:
                pass  # the sessions tell
            await asyncio.sleep(PROBE_SECONDS)

    async def ask(self) -> None:
        """Ask while Redis announces nothing, for ever."""
        while True:
            unread = [] if self.are_announced else [*self._unread()]
            if unread:
                try:
                    async with translated():
                        places = await self._ask(keys=unread)
                    for place in places:
                        self._arrived(unread[place - 1])
                except StoreError:  # the sessions tell
                    await asyncio.sleep(RECONNECT_SECONDS)
            await asyncio.sleep(max(ASK_SECONDS, ASK_SECONDS_EACH * len(unread)))


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
