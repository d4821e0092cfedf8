"""The runner runs sessions for a worker: one call a session, until it sleeps, ends, is lost or is handed over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from math import inf
from typing import Any, Final

import structlog
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as ConnectionLost

from context_builder.errors import LeaseLost, StoreError, StoreUnavailable
from context_builder.fleet.sleepers import Sleepers
from context_builder.session.keys import SESSIONS, Keys
from context_builder.session.session import Session
from context_builder.storage.redis_availability import translated

log = structlog.get_logger(__name__)

LONGEST_LOOK: Final = 1.0
"""Most seconds between two checks of which sessions may sleep."""

SLEEPS_EARLY: Final = 10.0
"""Seconds without a message after which a session sleeps when another one waits for its place."""


OWNERS_FIRST: Final = 3.0
"""Seconds after another Redis is back in which nobody takes a session: its owner may have to restore what Redis lost,
and a machine on which much starts again is slow. One that was full, or could not be reached, has lost nothing."""

STEADY: Final = 30.0
"""Seconds that a worker runs sessions, after which it takes them again at once when it had to hand them over."""

LONGEST_PAUSE: Final = 5.0
"""Most seconds that a worker waits before it takes sessions again that it had to hand over repeatedly: it would only
start them, over and over. Others may take them meanwhile."""


class RunResult(Enum):
    """How a session left its runner."""

    DONE = "done"
    """It sleeps, or was ended, or was forgotten: nobody need run it before its next message."""
    UNFINISHED = "unfinished"
    """Somebody else is to have it."""
    LOST = "lost"
    """Somebody else has it."""


class SessionRunner:
    """Runs sessions made by ``session_of``, each once, and puts those to sleep that nobody spoke in for ``sleep``
    seconds; the longest silent ones earlier, while ``waiting`` others find no place.

    It takes sessions once it is open, and until it is drained.
    """

    def __init__(
        self,
        redis: Redis,
        session_of: Callable[[str], Session],
        sleepers: Sleepers,
        sleep: float,
        waiting: Callable[[], int] = lambda: 0,
    ) -> None:
        self._redis = redis
        self._session_of = session_of
        self._sleepers = sleepers
        self._sleep = sleep
        self._waiting = waiting
        self._running: dict[str, Session] = {}
        self._early: set[Session] = set()
        self._left = asyncio.Condition()
        self._is_open = self._has_been_open = False
        self._opened_at = -inf
        self._pause = 0.0
        self._history: tuple[object, object] | None = None

    def __contains__(self, session_id: str) -> bool:
        """Return whether the session is run here, or waited for."""
        return session_id in self._running

    def __len__(self) -> int:
        """Return how many sessions are run here, or waited for."""
        return len(self._running)

    @property
    def is_served(self) -> bool:
        """Return whether Redis takes the commits of all sessions that are ready."""
        return all(session.is_served for session in self._running.values() if session.ready.is_set())

    async def run(self, session_id: str) -> RunResult:
        """Run the session once its owner, if it has one, has left it."""
        async with self._left:  # who was frozen may be handed again what it still runs
            await self._left.wait_for(lambda: session_id not in self._running)
            if not self._is_open:
                return RunResult.UNFINISHED
            session = self._running[session_id] = self._session_of(session_id)
        try:
            if not await self._is_known(session_id):
                return RunResult.DONE
            await session.serve()
            return await self._after(session)
        except LeaseLost as lost:
            log.info("fleet.session_lost", session_id=session_id, reason=str(lost))
            return RunResult.LOST
        finally:
            del self._running[session_id]
            self._early.discard(session)
            async with self._left:
                self._left.notify_all()

    async def _after(self, session: Session) -> RunResult:
        if not session.told_to_stop.is_set():
            return RunResult.DONE  # it was ended
        if not session.is_idle(SLEEPS_EARLY if session in self._early else self._sleep):
            return RunResult.UNFINISHED
        if session.relays.are_away:
            await self._sleepers.postpone(session.session_id)
        await self._sleepers.add(session.session_id, session.silent_for)
        log.info("fleet.session_sleeps", session_id=session.session_id, undelivered=session.relays.are_away)
        return RunResult.DONE

    async def has_input(self, session_id: str) -> bool:
        """Return whether deliveries wait in the session's input."""
        async with translated():
            return bool(await self._redis.exists(Keys(session_id).input))

    async def _is_known(self, session_id: str) -> bool:
        """Return whether there is anything to run; of a forgotten session there is not."""
        keys = Keys(session_id)
        async with translated():
            return bool(await self._redis.exists(keys.input, keys.checkpoint))

    async def open(self) -> None:
        """Take sessions from now on, but leave owners time in a Redis that has just come back.

        Raises redis-py's ``ConnectionError`` when Redis is away, for docket, which tries again.
        """
        try:
            wait = await self._time_for_owners()
        except StoreUnavailable as error:
            raise ConnectionLost(str(error)) from None
        except StoreError:  # a user of this Redis may not be allowed to ask
            wait = OWNERS_FIRST if self._has_been_open else 0.0
        await asyncio.sleep(max(wait, self._pause))
        self._is_open = self._has_been_open = True
        self._opened_at = asyncio.get_running_loop().time()

    async def _time_for_owners(self) -> float:
        """Return how many seconds owners need yet: none in the Redis that was there before, or has long been there."""
        async with translated():
            server: dict[str, Any] = await self._redis.info("server")
            replication: dict[str, Any] = await self._redis.info("replication")
            has_sessions = await self._redis.exists(SESSIONS)
        before, self._history = self._history, (server.get("run_id"), replication.get("master_replid"))
        if self._has_been_open:
            return 0.0 if self._history == before else OWNERS_FIRST
        return OWNERS_FIRST - float(server.get("uptime_in_seconds", inf)) if has_sessions else 0.0

    def hand_over(self) -> None:
        """Let every session leave once Redis has all of it, however long that is away, and take no more."""
        if self._is_open and self._running:
            was_steady = asyncio.get_running_loop().time() - self._opened_at > STEADY
            self._pause = 0.0 if was_steady else min(LONGEST_PAUSE, 2 * self._pause + 0.5)
        self._is_open = False
        for session in self._running.values():
            session.hand_over()

    def drain(self) -> None:
        """Let every session leave after the commit under way, and take no more."""
        self._is_open = False
        for session in self._running.values():
            session.stop()

    async def put_to_sleep(self) -> None:
        """Let sessions leave that may sleep, for ever."""
        pause = min(LONGEST_LOOK, self._sleep / 4)
        while True:
            await asyncio.sleep(pause)
            running = [session for session in self._running.values() if not session.told_to_stop.is_set()]
            for session in running:
                if session.is_idle(self._sleep):
                    session.stop()
            if waiting := self._waiting():
                silent = [session for session in running if session.is_idle(SLEEPS_EARLY)]
                silent.sort(key=lambda session: session.silent_for, reverse=True)
                self._early.update(silent[:waiting])
                for session in silent[:waiting]:
                    session.stop()
