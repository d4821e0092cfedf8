"""This route streams a session live as server-sent events: the state, then patches, and silence."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Request
from fastapi.responses import StreamingResponse

from context_builder.server.event_stream import event, stream
from context_builder.server.guarded_route import READER, guarded_router
from context_builder.server.problem import not_found
from context_builder.server.seen_session import SeenHere
from context_builder.server.services import OwnRedis, ServicesHere, SessionId
from context_builder.server.session_watch import INTERVAL, SessionWatch

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
    read = session.state if session.is_redacted else None
    async with services.watches.watching(redis, session_id, read) as watch:
        if watch.gone:
            raise not_found()
    number: int | None = None
    has_begun = is_silent = False

    async def news(watch: SessionWatch) -> bytes | None:
        nonlocal number, has_begun, is_silent
        if watch.gone or not await session.still_holds():
            return None
        if not has_begun:
            number, has_begun = _known(watch, last_event_id), True
        pieces = []
        patch = None if number is None else watch.since(number)
        if patch is None:
            pieces.append(event("state", watch.state, watch.revision))
        elif patch:
            pieces.append(event("patch", patch, watch.revision))
        number = watch.number
        if watch.is_silent != is_silent:
            is_silent = watch.is_silent
            pieces.append(event("silence", {**session.clock(watch.conversation), "silence": is_silent}))
        return b"".join(pieces)

    return stream(request, services, services.watches.watching(redis, session_id, read), news, INTERVAL)


def _known(watch: SessionWatch, last_event_id: str | None) -> int | None:
    text = (last_event_id or "").strip()
    return watch.number_of(int(text)) if text.isascii() and text.isdigit() and len(text) < 20 else None
