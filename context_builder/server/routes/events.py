"""A session as it happens, as server-sent events: the state, then patches, and silence."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any, Final

import orjson
from fastapi import Header, Request
from fastapi.responses import StreamingResponse

from context_builder.server.guarded_route import READER, guarded_router
from context_builder.server.problem import not_found
from context_builder.server.services import OwnRedis, Services, ServicesHere, SessionId
from context_builder.server.session_watch import INTERVAL, SessionWatch

router = guarded_router("sessions")

HEARTBEAT: Final = 15.0
"""Seconds without an event after which a comment is sent, so that nothing between here and there gives up."""

RECHECK: Final = 0.5
"""Seconds after which the credential is looked up again."""


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
    last_event_id: Annotated[str | None, Header(description="The id of the last event that was received.")] = None,
) -> StreamingResponse:
    """Stream what happens in a session: a whole `state`, then each change as a `patch` (RFC 6902), and `silence`.

    An event's id is the state's revision; with `Last-Event-ID`, the patches since then come first instead of the state,
    where they are still known. At most ten patches come in a second. The stream ends when the session is forgotten, or
    the credential no longer holds.
    """
    watching = services.watches.watching(redis, session_id)
    watch = await watching.__aenter__()
    if watch.gone:
        await watching.__aexit__(None, None, None)
        raise not_found()
    still_holds = request.scope["state"]["still_holds"]

    async def streamed() -> AsyncIterator[bytes]:
        try:
            async for event in _events(watch, services, last_event_id, still_holds):
                yield event
        finally:
            await watching.__aexit__(None, None, None)

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(streamed(), media_type="text/event-stream", headers=headers)


async def _events(
    watch: SessionWatch, services: Services, last_event_id: str | None, still_holds: Callable[[], Awaitable[bool]]
) -> AsyncIterator[bytes]:
    number = _known(watch, last_event_id)
    is_silent = False
    now = time.monotonic()
    sent_at = checked_at = now
    while not watch.gone and not services.stopping.is_set():
        changed = watch.changed
        pieces = []
        patch = None if number is None else watch.since(number)
        if patch is None:
            pieces.append(_event("state", watch.state, watch.revision))
        elif patch:
            pieces.append(_event("patch", patch, watch.revision))
        number = watch.number
        if watch.is_silent != is_silent:
            is_silent = watch.is_silent
            pieces.append(_event("silence", {**watch.conversation, "silence": is_silent}))
        now = time.monotonic()
        if not pieces and now - sent_at >= HEARTBEAT:
            pieces.append(b": still here\n\n")
        if pieces:
            yield b"".join(pieces)
            sent_at = time.monotonic()
            await asyncio.sleep(INTERVAL)
        if now - checked_at >= RECHECK:
            if not await still_holds():
                return
            checked_at = now
        await _any_of(changed, services.stopping, within=RECHECK)


async def _any_of(changed: asyncio.Event, stopping: asyncio.Event, *, within: float) -> None:
    tasks = [asyncio.ensure_future(one.wait()) for one in (changed, stopping)]
    try:
        await asyncio.wait(tasks, timeout=within, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def _known(watch: SessionWatch, last_event_id: str | None) -> int | None:
    text = (last_event_id or "").strip()
    return watch.number_of(int(text)) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _event(name: str, data: Any, revision: int | None = None) -> bytes:
    number = f"id: {revision}\n" if revision is not None else ""
    return f"{number}event: {name}\ndata: ".encode() + orjson.dumps(data) + b"\n\n"
