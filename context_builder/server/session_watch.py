"""All watchers of a session share one reader of Redis, which yields the state and then its changes."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, TypeAlias

import jsonpatch
import orjson
import structlog
from redis.asyncio import Redis

from context_builder.errors import StoreError
from context_builder.json_values import parsed_object
from context_builder.session.client import JsonObject, SessionClient
from context_builder.session.keys import Keys
from context_builder.session.store.state_patch import MARK_BYTES
from context_builder.storage.redis_availability import translated

log = structlog.get_logger(__name__)

ReadState: TypeAlias = Callable[[], Awaitable[JsonObject | None]]
"""Reads what a session publishes."""

INTERVAL: Final = 0.1
"""Seconds between two looks, and so between two patches."""

MOST_PATCHES: Final = 500
MOST_PATCH_BYTES: Final = 4_000_000
MOST_SESSIONS: Final = 256
"""Sessions whose last changes are remembered for watchers who come back."""


class Patch(NamedTuple):
    """The ``number``-th change of the state, from revision ``since`` to ``revision``, as operations of RFC 6902."""

    number: int
    since: int
    revision: int
    operations: list[Any]
    size: int


class SessionWatch:
    """Follows one session. ``number`` counts changes; ``gone`` is set when Redis holds nothing of the session."""

    def __init__(self, redis: Redis, session_id: str, read: ReadState | None = None) -> None:
        self._read = read or SessionClient(redis, session_id).remembered
        self._redis = redis
        self._keys = Keys(session_id)
        self._mark: bytes | None = None
        self._patches: deque[Patch] = deque()
        self._looking = asyncio.Lock()
        self.changed = asyncio.Event()
        self.state: JsonObject = {}
        self.number = 0
        self.revision = 0
        self.conversation: JsonObject = {}
        self.gone = False
        self.failing = False
        self.watchers = 0
        self.task: asyncio.Task[None] | None = None

    @property
    def is_silent(self) -> bool:
        return bool(self.conversation.get("silence"))

    async def look(self) -> None:
        """Read what is new. Raises :class:`StoreError`."""
        async with self._looking:
            async with translated(), self._redis.pipeline(transaction=True) as pipe:
                pipe.getrange(self._keys.state, -MARK_BYTES, -1)
                pipe.get(self._keys.conversation)
                mark, conversation = await pipe.execute()
            was_silent = self.is_silent
            self.conversation = parsed_object(conversation)
            if mark != self._mark:
                await self._take(mark)
            if self.is_silent != was_silent:
                self._tell()

    async def _take(self, mark: bytes) -> None:
        state = await self._read()
        self._mark = mark
        if state is None:
            self.gone = True
            self._tell()
            return
        if self.number and not self.gone:
            await self._note_change(state)
        else:
            self._begin_with(state)
        self._tell()

    async def _note_change(self, state: JsonObject) -> None:
        revision = _revision_of(state)
        if revision < self.revision:  # the session was forgotten, and begins again
            self._begin_with(state)
            return
        operations: list[Any] = await asyncio.to_thread(lambda: jsonpatch.make_patch(self.state, state).patch)
        if not operations:
            return
        self.number += 1
        self._patches.append(Patch(self.number, self.revision, revision, operations, len(orjson.dumps(operations))))
        self.state, self.revision = state, revision
        while len(self._patches) > MOST_PATCHES or sum(one.size for one in self._patches) > MOST_PATCH_BYTES:
            self._patches.popleft()

    def _begin_with(self, state: JsonObject) -> None:
        self.state, self.revision, self.gone = state, _revision_of(state), False
        self.number += 1
        self._patches.clear()

    def _tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def since(self, number: int) -> list[Any] | None:
        """Return all operations since that change as one patch; None where they are not all known."""
        if number == self.number:
            return []
        missed = [one for one in self._patches if one.number > number]
        if not missed or missed[0].number != number + 1:
            return None
        return [operation for one in missed for operation in one.operations]

    def number_of(self, revision: int) -> int | None:
        """Return the change that led to a revision; None where that is not known."""
        if revision == self.revision:
            return self.number
        return next((one.number - 1 for one in reversed(self._patches) if one.since == revision), None)

    async def follow(self) -> None:
        """Look again and again, until cancelled."""
        while not self.gone:
            await asyncio.sleep(INTERVAL)
            failing = False
            try:
                await self.look()
            except Exception as error:  # noqa: BLE001  # whoever watches waits for the next look
                tell = log.warning if isinstance(error, StoreError) else log.exception
                tell("watch.unread", error=type(error).__name__)
                failing = True
            if failing != self.failing:
                self.failing = failing
                self._tell()


class SessionWatches:
    """The watches of one process; each runs while somebody watches."""

    def __init__(self) -> None:
        self._watches: OrderedDict[tuple[Redis, str, bool], SessionWatch] = OrderedDict()

    @asynccontextmanager
    async def watching(
        self, redis: Redis, session_id: str, read: ReadState | None = None
    ) -> AsyncIterator[SessionWatch]:
        """Watch a session meanwhile; one that is shown redacted is ``read`` so, the same for all who see that.

        Raises :class:`StoreError` when Redis does not answer.
        """
        what = (
            redis,
            session_id,
            read is not None,
        )  # another Redis is another tenant's, whose session may be called the same
        watch = self._watches.get(what)
        if watch is None or watch.gone:
            watch = self._watches[what] = SessionWatch(redis, session_id, read)
        self._watches.move_to_end(what)
        watch.watchers += 1
        try:
            await watch.look()
            if watch.task is None:
                watch.task = asyncio.create_task(watch.follow(), name=f"watch {session_id}")
            yield watch
        finally:
            watch.watchers -= 1
            if not watch.watchers and watch.task is not None:
                watch.task.cancel()
                watch.task = None
            self._drop_idle()

    def _drop_idle(self) -> None:
        idle = [what for what, watch in self._watches.items() if not watch.watchers]
        for what in idle:
            if self._watches[what].gone or len(self._watches) > MOST_SESSIONS:
                del self._watches[what]


def _revision_of(state: JsonObject) -> int:
    revision = state.get("revision")
    return revision if isinstance(revision, int) else 0
