"""This route streams a session live as server-sent events: the state, then patches, and silence."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import jsonpatch
import orjson
from fastapi import Header, Request
from fastapi.responses import StreamingResponse
from redis.asyncio import Redis

from context_builder.concurrency import beside_loop
from context_builder.server.event_stream import event, stream, written_event
from context_builder.server.guarded_route import READER, OwnRedis, ServicesHere, SessionId, guarded_router
from context_builder.server.problem import not_found
from context_builder.server.seen_session import SeenHere
from context_builder.server.shared_look import Changes, SharedLook
from context_builder.session.client import JsonObject, SessionClient
from context_builder.session.keys import Keys
from context_builder.session.store.commit import MARK_BYTES
from context_builder.session.stored import CONVERSATION
from context_builder.storage.redis_availability import read_together, translated

ReadState: TypeAlias = Callable[[], Awaitable[JsonObject | None]]
"""Reads what a session publishes."""

INTERVAL: Final = 0.1
"""Seconds between two looks, and so between two patches."""

MOST_PATCHES: Final = 500
MOST_PATCH_BYTES: Final = 4_000_000


class Patch(NamedTuple):
    """The RFC 6902 operations that lead the state from the revision ``since`` to the next one that was seen."""

    since: int
    operations: list[Any]


class StateLook(NamedTuple):
    """A reader's copy of the state after so many changes, and whether the session was silent then."""

    reader: StateReader
    number: int
    is_silent: bool


class StateReader:
    """Reads one session's state and its changes. ``gone`` is set when Redis holds nothing of the session."""

    def __init__(self, redis: Redis, session_id: str, read: ReadState | None = None) -> None:
        self._read = read or SessionClient(redis, session_id).remembered
        self._redis = redis
        self._keys = Keys(session_id)
        self._mark: bytes | None = None
        self.patches: Changes[Patch] = Changes(MOST_PATCHES, MOST_PATCH_BYTES)
        self.state: JsonObject = {}
        self.conversation: JsonObject = {}
        self.gone = False

    @property
    def revision(self) -> int:
        return _revision_of(self.state)

    async def look(self) -> StateLook:
        """Read what is new. Raises :class:`~context_builder.errors.StoreError`, and what the database raises."""
        async with translated():
            mark, conversation = await read_together(
                self._redis, ("getrange", self._keys.state, -MARK_BYTES, -1), ("get", self._keys.conversation)
            )
        self.conversation = CONVERSATION.read(conversation)
        if mark != self._mark:
            state = await self._read()
            self._mark = mark
            await self._take(state)
        return StateLook(self, self.patches.number, bool(self.conversation.get("silence")))

    async def _take(self, state: JsonObject | None) -> None:
        was_gone, self.gone = self.gone, state is None
        state = state or {}
        if self.gone or was_gone or not self.patches.number or _revision_of(state) < self.revision:  # it began anew
            self.state = state
            self.patches.begin_anew()
            return
        operations, size = await beside_loop(_changes, self.state, state)
        if operations:
            self.patches.add(Patch(self.revision, operations), size)
            self.state = state

    def number_of(self, revision: int) -> int | None:
        """Return the change that led to a revision; None where that is not known."""
        if revision == self.revision:
            return self.patches.number
        return next((at - 1 for at, patch in reversed(self.patches) if patch.since == revision), None)


def _changes(before: JsonObject, after: JsonObject) -> tuple[list[Any], int]:
    """Return the operations that lead from one state to another, and how many bytes they are as JSON."""
    operations: list[Any] = jsonpatch.make_patch(before, after).patch
    return operations, len(orjson.dumps(operations))


def _revision_of(state: JsonObject) -> int:
    revision = state.get("revision")
    return revision if isinstance(revision, int) else 0


router = guarded_router("sessions")


@router.get(
    "/sessions/{session_id}/events",
    openapi_extra=READER,
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def session_events(
    session_id: SessionId,
    request: Request,
    services: ServicesHere,
    redis: OwnRedis,
    session: SeenHere,
    last_event_id: Annotated[str | None, Header(description="The id of the last event that was received.")] = None,
) -> StreamingResponse:
    """Stream what happens in a session: a whole `state`, then each change as a `patch` (RFC 6902), and `silence`.

    An event's id is the state's revision; with `Last-Event-ID`, the patches since then come first instead of the state,
    where they are still known. At most ten patches come in a second. `failing` says when the state cannot be read, and
    when it can be again. The stream ends when the session is forgotten, when it may be seen otherwise than before, or
    when the credential no longer holds.
    """
    # Another Redis is another tenant's, whose session may be called the same; one that is shown redacted is read so,
    # the same for all who see that.
    reader = StateReader(redis, session_id, session.state if session.is_redacted else None)
    what = ("state", redis, session_id, session.is_redacted)

    def watching() -> AbstractAsyncContextManager[SharedLook[StateLook]]:
        return services.looks.watching(what, reader.look, INTERVAL, share=0.0, kept=True)

    async with watching() as look:
        if (await look.now()).reader.gone:
            raise not_found()
    number: int | None = None
    has_begun = is_silent = False

    async def news(look: SharedLook[StateLook]) -> bytes | None:
        nonlocal number, has_begun, is_silent
        if look.seen is None or look.seen.reader.gone or not await session.still_holds():
            return None
        watch, silent = look.seen.reader, look.seen.is_silent
        if not has_begun:
            number, has_begun = _known(watch, last_event_id), True
        pieces = []
        patches = None if number is None else watch.patches.since(number)
        number = watch.patches.number  # others look meanwhile
        if patches is None:
            pieces.append(await written_event("state", watch.state, watch.revision))
        elif patches:
            operations = [operation for patch in patches for operation in patch.operations]
            pieces.append(await written_event("patch", operations, watch.revision))
        if silent != is_silent:
            is_silent = silent
            pieces.append(event("silence", {**session.clock(watch.conversation), "silence": is_silent}))
        return b"".join(pieces)

    return stream(request, services, watching(), news, INTERVAL)


def _known(watch: StateReader, last_event_id: str | None) -> int | None:
    text = (last_event_id or "").strip()
    return watch.number_of(int(text)) if text.isascii() and text.isdigit() and len(text) < 20 else None
