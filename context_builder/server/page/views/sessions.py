"""This view lists sessions live: who speaks, how fast, about what, and which are behind."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Query, Request
from starlette.responses import Response, StreamingResponse

from context_builder.server.access.caller import Caller
from context_builder.server.event_stream import event, stream
from context_builder.server.guarded_route import READER, CallerHere, ServicesHere
from context_builder.server.page.page_route import page_router
from context_builder.server.page.rendering import render
from context_builder.server.page.session_list import SessionList, SessionLister, as_seen
from context_builder.server.services import Services
from context_builder.server.shared_look import SharedLook

router = page_router()

INTERVAL: Final = 1.0
"""Seconds between two looks at the sessions, at least."""

Words = Annotated[str, Query(max_length=200, description="What is searched for.")]


@router.get("/sessions", openapi_extra=READER)
async def sessions(request: Request, services: ServicesHere, caller: CallerHere, q: Words = "") -> Response:
    """Show the sessions."""
    found = await seen_sessions(services, caller, q)
    return render(request, "sessions.html", title="Sessions", found=found, q=q)


@router.get("/live/sessions", openapi_extra=READER)
async def live_sessions(
    request: Request, services: ServicesHere, caller: CallerHere, q: Words = ""
) -> StreamingResponse:
    """Tell of the sessions whenever something about them changes."""
    lister = services.looks.of_tenant(caller.tenant_id, SessionLister)
    servers = services.sessions.servers.of_tenant(caller.tenant_id)
    told = 0

    async def news(look: SharedLook[SessionList]) -> bytes:
        nonlocal told
        if look.seen is None or look.number == told:
            return b""
        told = look.number
        return event("sessions", (await as_seen(services, caller, look.seen)).as_json(), look.number)

    what = ("sessions", caller.tenant_id, q)
    return stream(request, services, services.looks.watching(what, lambda: lister.find(servers, q), INTERVAL), news)


async def seen_sessions(services: Services, caller: Caller, words: str) -> SessionList:
    """Return the sessions that fit the words and that the caller may see."""
    lister = services.looks.of_tenant(caller.tenant_id, SessionLister)
    return await as_seen(
        services, caller, await lister.find(services.sessions.servers.of_tenant(caller.tenant_id), words)
    )
