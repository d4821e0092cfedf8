"""This view shows a session live: messages, domains, silence and the summary."""

from __future__ import annotations

import time
from typing import Annotated, Final

import orjson
from fastapi import Header, Query, Request
from starlette.responses import Response, StreamingResponse

from context_builder.concurrency import beside_loop
from context_builder.json_values import objects_of
from context_builder.server.event_stream import event, stream, written_event
from context_builder.server.guarded_route import READER, CallerHere, OwnRedis, ServicesHere, SessionId
from context_builder.server.page.conversation_reader import (
    ConversationLook,
    ConversationReader,
    in_their_place,
    shown_messages,
    with_topics,
)
from context_builder.server.page.page_route import page_router
from context_builder.server.page.rendering import render
from context_builder.server.page.summary_view import under_headings
from context_builder.server.problem import not_found
from context_builder.server.seen_session import SeenHere
from context_builder.server.shared_look import SharedLook

router = page_router()

INTERVAL: Final = 0.1
"""Seconds between two looks at a session."""

READ_AT_ONCE: Final = 100
"""Messages of a page without scripts."""

MOST_MESSAGES: Final = 1_000
Moment = Annotated[float, Query(allow_inf_nan=False)]
MessageId = Annotated[int | None, Query(ge=0, lt=2**53)]


@router.get("/sessions/{session_id}", openapi_extra=READER)
async def session(
    session_id: SessionId,
    request: Request,
    services: ServicesHere,
    caller: CallerHere,
    redis: OwnRedis,
    seen: SeenHere,
    before: MessageId = None,
) -> Response:
    """Show a session; ``before`` leads to older messages where no script loads them."""
    reader = ConversationReader(redis, session_id, seen, has_model=services.has_model)
    await reader.look()
    if reader.gone:
        raise not_found()
    whole = await reader.whole()
    shown = whole["messages"][-READ_AT_ONCE:]
    if before is not None:
        found = await seen.after(session_id, max(-1, before - READ_AT_ONCE - 1), READ_AT_ONCE) or []
        shown = shown_messages([one for one in found if one["id"] < before])
    corrected = {one["corrects"] for one in shown if "corrects" in one}
    sources = {one["id"]: objects_of(one.get("sources")) for one in await seen.points()}
    return await render(
        request,
        "session.html",
        title=session_id,
        session_id=session_id,
        head=whole["head"],
        chart=await beside_loop(reader.chart),
        messages=with_topics(in_their_place(shown)),
        corrected=corrected,
        points=under_headings(whole["points"]),
        count=len(whole["points"]),
        sources=sources,
        is_past=before is not None,
        now=time.time(),
    )


@router.get("/live/sessions/{session_id}", openapi_extra=READER)
async def live_session(
    session_id: SessionId,
    request: Request,
    services: ServicesHere,
    caller: CallerHere,
    redis: OwnRedis,
    seen: SeenHere,
    last_event_id: Annotated[str, Header()] = "",
) -> StreamingResponse:
    """Tell what there is, then what changes; to who comes back, what changed meanwhile, where that is known."""
    reader = ConversationReader(redis, session_id, seen, has_model=services.has_model)
    told: int | None = None

    async def news(look: SharedLook[ConversationLook]) -> bytes | None:
        nonlocal told
        if not await seen.still_holds():
            return None
        if look.seen is None:
            return b""
        shared = look.seen.reader
        if told is None:
            told = shared.number_of(last_event_id)
        if told == shared.number:
            return b""
        change = None if told is None else shared.since(told)
        told = shared.number
        if shared.gone:
            return event("gone", {})
        name = "change"
        if change is None:
            change, name = await shared.whole(), "begin"
        return await written_event(name, {**change, "now": time.time()}, shared.token(told)) if change else b""

    what = ("session", caller.tenant_id, session_id, seen.access)
    return stream(request, services, services.looks.watching(what, reader.look, INTERVAL), news)


@router.get("/data/sessions/{session_id}/domains", openapi_extra=READER)
async def domains_between(
    session_id: SessionId, redis: OwnRedis, seen: SeenHere, since: Moment, until: Moment
) -> Response:
    """Return the chart of the domains from one epoch second to another; null where none was talked about."""
    reader = ConversationReader(redis, session_id, seen)
    await reader.look()
    if reader.gone:
        raise not_found()
    chart = await beside_loop(reader.chart, since, until)
    return Response(orjson.dumps(chart and chart.as_json()), media_type="application/json")


@router.get("/data/sessions/{session_id}/messages", openapi_extra=READER)
async def earlier_messages(
    session_id: SessionId,
    seen: SeenHere,
    after: Annotated[int, Query(ge=-1, lt=2**53)] = -1,
    limit: Annotated[int, Query(ge=1, le=MOST_MESSAGES)] = 200,
) -> Response:
    """Return messages in the order in which they arrived."""
    found = await seen.after(session_id, after, limit)
    if found is None:
        raise not_found()
    body = await beside_loop(lambda: orjson.dumps(shown_messages(found)))
    return Response(body, media_type="application/json")
