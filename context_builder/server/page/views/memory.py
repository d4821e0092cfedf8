"""This view searches and filters memories, shows replacements, and deletes memories after a confirmation."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import Request, Response
from starlette.responses import RedirectResponse

from context_builder.domains import DOMAINS
from context_builder.errors import CannotForget
from context_builder.server.access.caller import Caller, Role
from context_builder.server.asgi.callers import PAGE
from context_builder.server.guarded_route import ADMIN, READER, CallerHere, ServicesHere
from context_builder.server.page.choices import once, remembered_to_choose, with_chosen
from context_builder.server.page.form_page import form_page, values_of
from context_builder.server.page.memory_search import (
    KIND_NAMES,
    KINDS,
    MEMORIES_A_PAGE,
    MemorySearch,
    ShownMemory,
    searched,
)
from context_builder.server.page.page_route import page_router
from context_builder.server.problem import Problem
from context_builder.server.routes.memories import MOST_FORGOTTEN, forget_memories, memories_of
from context_builder.server.services import Services

router = page_router()


@router.get("/memory", openapi_extra=READER)
async def memory_page(request: Request, services: ServicesHere, caller: CallerHere) -> Response:
    """Show what was found, the newest where nothing is looked for."""
    search = MemorySearch.read(request.query_params)
    found: list[ShownMemory] = []
    has_more, problem = False, None
    try:
        found, has_more = await searched(services, caller, search)
    except Problem as error:
        problem = error
    remembered = await remembered_to_choose(services, caller)
    people = once((*remembered.people, *(one.memory.speaker for one in found)))
    sessions = once((*remembered.sessions, *(one.memory.session_id for one in found)))
    forgotten = request.query_params.get("forgotten", "")
    return form_page(
        request,
        "memory.html",
        title="Memory",
        problem=problem,
        search=search,
        found=found,
        has_more=has_more,
        step=MEMORIES_A_PAGE,
        kinds=KINDS,
        kind_names=KIND_NAMES,
        domains=DOMAINS,
        people=with_chosen(people, search.speaker),
        sessions=with_chosen(sessions, search.session),
        may_forget=Role.ADMIN in caller.roles,
        forgotten=int(forgotten) if forgotten.isascii() and forgotten.isdigit() and len(forgotten) < 6 else None,
    )


@router.get("/memory/forget", openapi_extra=ADMIN)
async def forget_question(request: Request, services: ServicesHere, caller: CallerHere) -> Response:
    """Show the chosen memories, and ask whether they are to be forgotten."""
    return await _question(request, services, caller, request.query_params.getlist("id"))


async def _question(
    request: Request, services: Services, caller: Caller, ids: Sequence[str], problem: Problem | None = None
) -> Response:
    memories = await memories_of(services, caller, ids[:MOST_FORGOTTEN])
    kept = {one.session_id for one in await services.sessions.of_caller(caller)}
    living = sorted({one.session_id for one in memories if one.session_id in kept})
    return form_page(
        request, "memory_forget.html", title="Forget memories", problem=problem, memories=memories, living=living
    )


@router.post("/memory/forget", openapi_extra=ADMIN)
async def forget(request: Request, services: ServicesHere, caller: CallerHere) -> Response:
    """Forget the memories that the caller may see, everywhere; the others are not there."""
    ids = (await values_of(request, "id"))[:MOST_FORGOTTEN]
    try:
        forgotten = await forget_memories(services, caller, ids)
    except CannotForget:
        refused = Problem(409, "cannot_forget", "this memory store has no way to delete what it keeps; delete it there")
        return await _question(request, services, caller, ids, refused)
    return RedirectResponse(f"{PAGE}/memory?forgotten={len(forgotten)}", 303)
