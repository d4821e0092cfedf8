"""This view lists sessions live: who speaks, how fast, about what, and which are behind."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

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
Sort = Annotated[str, Query(max_length=20, description="The column that the list is sorted by.")]


class Column(NamedTuple):
    """Heads a column; ``sort`` is empty where nothing sorts by it. Of what is not a number, the least comes first."""

    name: str
    sort: str = ""
    is_number: bool = True

    def direction(self, by: str) -> str:
        """Return which way a list that is sorted ``by`` a column goes in this one, as ARIA says it."""
        if not self.sort or by.removeprefix("-") != self.sort:
            return ""
        return "descending" if self.is_number is not by.startswith("-") else "ascending"

    def following(self, by: str) -> str:
        """Return what this column's heading sorts by next."""
        return f"-{self.sort}" if by == self.sort else self.sort


COLUMNS: Final = (
    Column("Session", "session", is_number=False),
    Column("Status", "status", is_number=False),
    Column("Domains", is_number=False),
    Column("Last spoke", "spoke"),
    Column("Messages", "messages"),
    Column("Behind", "behind"),
    Column("Cost", "cost"),
    Column("Run by", is_number=False),
)


@router.get("/sessions", openapi_extra=READER)
async def sessions(
    request: Request, services: ServicesHere, caller: CallerHere, q: Words = "", sort: Sort = "spoke"
) -> Response:
    """Show the sessions."""
    found = (await seen_sessions(services, caller, q)).sorted(sort)
    return await render(request, "sessions.html", title="Sessions", found=found, q=q, sort=sort, columns=COLUMNS)


@router.get("/live/sessions", openapi_extra=READER)
async def live_sessions(
    request: Request, services: ServicesHere, caller: CallerHere, q: Words = "", sort: Sort = "spoke"
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
        seen = await as_seen(services, caller, look.seen)
        return event("sessions", seen.sorted(sort).as_json(), look.number)

    what = ("sessions", caller.tenant_id, q)
    return stream(request, services, services.looks.watching(what, lambda: lister.find(servers, q), INTERVAL), news)


async def seen_sessions(services: Services, caller: Caller, words: str) -> SessionList:
    """Return the sessions that fit the words and that the caller may see."""
    lister = services.looks.of_tenant(caller.tenant_id, SessionLister)
    return await as_seen(
        services, caller, await lister.find(services.sessions.servers.of_tenant(caller.tenant_id), words)
    )
