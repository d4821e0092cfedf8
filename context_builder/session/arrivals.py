"""Arrivals tell which of many input lists were pushed to, without a connection for each list.

Redis announces pushes, where it is set to; else it is asked which lists are not empty.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, Final
from uuid import uuid4

import structlog
from redis.asyncio import Redis

from context_builder.errors import StoreError, StoreUnavailable
from context_builder.session.store.scripts import script
from context_builder.storage.redis_availability import translated

log = structlog.get_logger(__name__)

EVENTS_NEEDED: Final = "El"
"""Flags of ``notify-keyspace-events`` by which Redis announces pushes: events of lists, told by the event's name."""

PROBE_SECONDS: Final = 0.25
"""Time between probes, which tell whether Redis announces pushes."""

MISSED_PROBES: Final = 2
"""Probes without an announcement of any push since, after which Redis is asked instead. Probes are counted and not
seconds, because a process that was late itself has missed none."""

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
