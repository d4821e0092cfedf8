"""Discovery finds sessions with waiting messages: by notifications of Redis and of our clients, and by scanning.

Every worker of a fleet discovers; that each session is started once is docket's doing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, Final

import structlog
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import RedisError

from context_builder.errors import StoreError, StoreUnavailable
from context_builder.fleet.sleepers import POSTPONED
from context_builder.session.arrivals import Arrivals
from context_builder.session.keys import ARRIVALS, SESSION_ID_RULE, SESSIONS, Keys, is_session_id, split_key
from context_builder.session.store.scripts import script
from context_builder.storage.redis_availability import translated

SCANNED: Final = 20_000
"""Keys that one scan looks at, approximately; the next one goes on from there."""

SCAN_PART: Final = 1000

RARER: Final = 60
"""Factor by which scans are rarer while Redis reports pushes: they find what was reported while nobody listened."""

DEAF_AFTER: Final = 2.5
"""Seconds after a start until it is known whether Redis announces pushes."""

LOOK: Final = 0.25
"""Seconds between two checks that Redis still reports pushes."""

ASK_AGAIN: Final = 1.0
"""Seconds between two looks at a session that does not run here, however often it is pushed to. Those that somebody
owns are looked at together."""

OWNED: Final = 30.0
"""Seconds between two starts of a session that somebody owns, so that it is run when that was a terminal which ends. A
worker of the fleet needs none: docket knows what it runs, and every worker hears every push."""

COALESCE: Final = 0.02
"""Seconds in which sessions that are told of are started together."""

RECONNECT: Final = 0.5

MOST_REFUSED: Final = 1_000
"""Most ids that no session can have and that are logged, once each."""

SHOWN: Final = 128
"""Most characters of such an id in the log."""

PART: Final = 500
"""Sessions that one script looks at, in some milliseconds."""

PARTS: Final = 10
"""Scripts that one look for sessions with work and without an owner runs at most."""

log = structlog.get_logger(__name__)


class Discovery:
    """Gives ``start`` the ids of sessions to run, those that are ``here`` left out.

    ``arrivals`` hear of pushes, as long as Redis reports them. Our clients tell of theirs, which is listened to here.
    Nobody tells of work that is left over: by a terminal that ended, or a restore. It is looked for; ``keep_last``
    messages that a summary leaves are none. ``start`` may be given a session that runs, by whichever worker; it raises
    :class:`~context_builder.errors.StoreError` when it is to be given them again.
    """

    def __init__(
        self,
        redis: Redis,
        scan: float,
        start: Callable[[Collection[str]], Awaitable[None]],
        here: Callable[[str], bool],
        arrivals: Arrivals,
        *,
        keep_last: int = 0,
    ) -> None:
        self._redis = redis
        self._arrivals = arrivals
        arrivals.elsewhere = self._pushed
        self._interval = scan
        self._keep_last = keep_last
        self._unfinished = script(redis, "unfinished", "context_builder.fleet")
        self._start = start
        self._here = here
        self._found: set[str] = set()
        self._refused: set[str] = set()
        self._wake = asyncio.Event()
        self._wakes_later = False
        self._asked: dict[str, float] = {}
        self._owned: dict[str, float] = {}
        self._scan_now = asyncio.Event()
        self._heard: bool | None = None

    async def run(self) -> None:
        """Discover for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._listen(), name="fleet.listen")
            tasks.create_task(self._watch_arrivals(), name="fleet.watch")
            tasks.create_task(self._scan(), name="fleet.scan")
            tasks.create_task(self._hand_on(), name="fleet.hand_on")

    def find(self, session_id: str) -> None:
        """Note that the session may have something to do; an id that no session can have is told once."""
        if not is_session_id(session_id):
            self._refuse(session_id)
            return
        self._found.add(session_id)
        if session_id in self._owned:
            self._wake_later()
        else:
            self._wake.set()

    def _refuse(self, session_id: str) -> None:
        if session_id not in self._refused and len(self._refused) < MOST_REFUSED:
            self._refused.add(session_id)
            advice = f"its messages wait for ever: a session id is {SESSION_ID_RULE}"
            log.error("fleet.unusable_session_id", session_id=session_id[:SHOWN], advice=advice)

    def _wake_later(self) -> None:
        if not self._wakes_later:
            self._wakes_later = True
            asyncio.get_running_loop().call_later(ASK_AGAIN / 4, self._wake.set)

    async def _listen(self) -> None:
        while True:
            try:
                async with self._redis.pubsub() as pubsub:
                    async with translated():
                        await pubsub.subscribe(ARRIVALS)
                    await self._hear(pubsub)
            except (ConnectionLost, OSError, StoreUnavailable):
                pass  # that Redis is away, the worker tells
            except (RedisError, StoreError) as error:
                log.warning("fleet.not_listening", error=type(error).__name__)
            await asyncio.sleep(RECONNECT)

    async def _hear(self, pubsub: PubSub) -> None:
        while True:
            answer: Any = await pubsub.parse_response(block=True)  # listen() costs twice as much, for every push
            kind, _, data = answer or (b"", b"", b"")
            if kind == b"subscribe":
                self._scan_now.set()  # for what was told before
            elif kind == b"message":
                self.find(data.decode(errors="replace"))

    def _pushed(self, key: str) -> None:
        self._look_at(key.encode())

    def _look_at(self, key: bytes) -> None:
        """Find the session whose input is under this key."""
        parts = split_key(key)
        if parts is not None and parts[1] == "input":
            self.find(parts[0])

    async def _watch_arrivals(self) -> None:
        """Tell when Redis begins to report pushes, or no longer does, and scan for what was pushed before."""
        began = time.monotonic()
        while True:
            hears = self._arrivals.are_announced
            is_known = hears or self._heard is not None or time.monotonic() - began > DEAF_AFTER
            if is_known and hears != self._heard:
                self._heard = hears
                log.info("fleet.hears_pushes" if hears else "fleet.scans", interval=self._interval)
                self._scan_now.set()
            await asyncio.sleep(LOOK)

    async def _scan(self) -> None:
        cursor = place = 0
        while True:
            try:
                whole = self._scan_now.is_set()
                self._scan_now.clear()
                cursor = await self._scan_part(0 if whole else cursor, whole=whole)
                place = await self._find_unfinished(place)
            except StoreUnavailable:
                pass
            except StoreError as error:
                log.warning("fleet.scan_failed", error=str(error))
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval * (RARER if self._heard and not cursor else 1)):
                    await self._scan_now.wait()

    async def _scan_part(self, cursor: int, *, whole: bool) -> int:
        """Look at :data:`SCANNED` keys, or at the ``whole`` rest; return where to go on."""
        looked_at = 0
        while True:
            async with translated():
                answer: Any = await self._redis.scan(cursor, match="context_builder:*:input", count=SCAN_PART)
            cursor, keys = answer
            for key in keys:
                self._look_at(key)
            looked_at += SCAN_PART
            if not cursor or (looked_at >= SCANNED and not whole):
                return int(cursor)

    async def _find_unfinished(self, place: int) -> int:
        """Look at the newest sessions from ``place`` on; return where to go on."""
        for _ in range(PARTS):
            args: list[str | int] = [place, place + PART - 1, self._keep_last]
            async with translated():
                sessions, found = await self._unfinished(keys=[SESSIONS, POSTPONED], args=args)
            for session_id in found:
                self.find(session_id.decode(errors="replace"))
            place += PART
            if place >= sessions:
                return 0
        return place

    async def _hand_on(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(COALESCE)
            self._wake.clear()
            self._wakes_later = False
            now = time.monotonic()
            self._found = {each for each in self._found if not self._here(each)}
            self._asked = {each: asked for each, asked in self._asked.items() if asked > now - ASK_AGAIN}
            self._owned = {each: asked for each, asked in self._owned.items() if asked > now - OWNED}
            looked_at = self._found - self._asked.keys()
            if looked_at:
                try:
                    owned = await self._which_are_owned([*looked_at])
                    if starting := looked_at - (owned & self._owned.keys()):
                        await self._start(starting)
                except StoreError as error:
                    log.warning("fleet.not_started", sessions=len(looked_at), error=str(error))
                else:
                    self._found -= looked_at
                    self._owned.update(dict.fromkeys(owned - self._owned.keys(), now))
                self._asked.update(dict.fromkeys(looked_at, now))
            if self._found:  # told of again too soon
                self._wake_later()

    async def _which_are_owned(self, session_ids: Sequence[str]) -> set[str]:
        async with translated(), self._redis.pipeline(transaction=False) as pipe:
            for session_id in session_ids:
                pipe.exists(Keys(session_id).owner)
            owned = await pipe.execute()
        return {session_id for session_id, is_owned in zip(session_ids, owned, strict=True) if is_owned}
