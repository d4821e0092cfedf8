"""This view searches and filters memories, shows replacements, and deletes memories after a confirmation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlencode

from fastapi import Request, Response
from starlette.responses import RedirectResponse

from context_builder.domains import DOMAINS
from context_builder.errors import CannotForget, FilterInvalid
from context_builder.knowledge.governance import Access
from context_builder.knowledge.local import said_ref
from context_builder.memory.filter import memory_filter
from context_builder.memory.memory import MemoryQuery, is_by_meaning_alone
from context_builder.server.access.caller import Caller, Role
from context_builder.server.asgi.callers import PAGE
from context_builder.server.guarded_route import ADMIN, READER, CallerHere, ServicesHere
from context_builder.server.page.choices import once, remembered_to_choose, with_chosen
from context_builder.server.page.page_route import form_page, page_router, values_of
from context_builder.server.problem import Problem, answered
from context_builder.server.routes.memories import (
    LONGEST_QUERY,
    MOST_FORGOTTEN,
    NOTE,
    FoundMemory,
    forget_memories,
    found_memories,
    memories_of,
)
from context_builder.server.services import Services

KINDS: Final = {
    "message": "Messages",
    "point": "Points of summaries",
    "preference": "Preferences",
    "session_summary": "Summaries of what left a prompt",
    NOTE: "Notes",
}
"""Kinds of memory, as people are offered them."""

KIND_NAMES: Final = {
    "message": "message",
    "point": "point",
    "preference": "preference",
    "session_summary": "summary",
    NOTE: "note",
}
"""The same of a single memory."""

MEMORIES_A_PAGE: Final = 10
"""Memories that are shown at first; each further page adds as many."""

MOST: Final = 300
_LONGEST_SHOWN: Final = 100_000
_FIELDS: Final = ("q", "speaker", "domain", "kind", "session", "since", "until")


@dataclass(frozen=True, slots=True)
class MemorySearch:
    """The fields of the form as they were sent; days are in UTC."""

    q: str = ""
    speaker: str = ""
    domain: str = ""
    kind: str = ""
    session: str = ""
    since: str = ""
    until: str = ""
    most: int = MEMORIES_A_PAGE

    @classmethod
    def read(cls, sent: Mapping[str, str]) -> Self:
        """Return the search in a request's query."""
        most = sent.get("most", "")
        shown = int(most) if most.isascii() and most.isdigit() and len(most) < 6 else MEMORIES_A_PAGE
        fields = {name: sent.get(name, "").strip() for name in _FIELDS}
        return cls(**fields, most=min(max(shown, 1), MOST))

    @property
    def is_filtered(self) -> bool:
        """Return whether anything but words is looked for."""
        return any(getattr(self, name) for name in _FIELDS if name != "q")

    @property
    def is_narrowed(self) -> bool:
        """Return whether anything is looked for."""
        return any(getattr(self, name) for name in _FIELDS)

    def query(self) -> MemoryQuery:
        """Return what the memory is asked: one more than is shown, which tells whether there are more.

        Raises :class:`~context_builder.errors.FilterInvalid`, which says which field cannot be used.
        """
        if len(self.q) > LONGEST_QUERY:
            raise FilterInvalid(f"what is looked for is longer than {LONGEST_QUERY:,} characters")
        where = memory_filter(
            speaker=self.speaker,
            session=self.session,
            since=self.since,
            until=self.until,
            kinds=(self.kind,) if self.kind else (),
            tags=(self.domain,) if self.domain else (),
        )
        return MemoryQuery(self.q, self.most + 1, filter=where)

    def address(self, **changed: object) -> str:
        """Return the query of the address that shows the same, but for what is ``changed``."""
        fields = {name: getattr(self, name) for name in _FIELDS} | changed
        return urlencode({name: value for name, value in fields.items() if value})


@dataclass(frozen=True, slots=True)
class ShownMemory:
    """A memory that was found, with the text that replaced it, and the one that it replaced.

    None where nothing did; empty for a text that is gone, or not to be shown.
    """

    memory: FoundMemory
    replaced_by: str | None = None
    replaces: str | None = None

    @property
    def takes_back(self) -> str:
        """Return the preference that it takes back; empty where it takes none back."""
        return str(self.memory.metadata.get("withdrawn") or "")


async def searched(services: Services, caller: Caller, search: MemorySearch) -> tuple[list[ShownMemory], bool]:
    """Return what was found that the caller may see, and whether there is more."""
    query = search.query()
    found = await found_memories(services, caller, query)
    has_more = len(found) > search.most and search.most < MOST
    return await with_replacements(services, caller, found[: search.most]), has_more


async def with_replacements(services: Services, caller: Caller, found: Sequence[FoundMemory]) -> list[ShownMemory]:
    """Return the memories with what replaced what, as far as the caller may see it."""
    refs = {one.id: ref for one in found if one.kind == "point" and (ref := said_ref(one)) is not None}
    older = {
        one.id: f"point:{one.session_id}/{number}"
        for one in found
        if one.id in refs and isinstance(number := one.metadata.get("supersedes"), int)
    }
    nodes = await services.knowledge.nodes(caller.tenant_id, list(refs.values()), 0)
    newer = {name: nodes[ref].superseded_by for name, ref in refs.items() if ref in nodes}
    shown = await _shown(services, caller, [*filter(None, newer.values()), *older.values()])

    def text_of(ref: str | None) -> str | None:
        return shown.get(ref, "") if ref else None

    return [ShownMemory(one, text_of(newer.get(one.id)), text_of(older.get(one.id))) for one in found]


async def _shown(services: Services, caller: Caller, refs: Sequence[str]) -> dict[str, str]:
    """Return the texts of what the refs name, of those that the caller may see."""
    nodes = await services.knowledge.nodes(caller.tenant_id, list(dict.fromkeys(refs)), _LONGEST_SHOWN)
    if not nodes:
        return {}
    viewer = services.packages.viewer
    asked = list(nodes.values())
    access = await viewer.access(caller.agent, [one.governed(caller.tenant_id) for one in asked])
    shown = {}
    for node, how in zip(asked, access, strict=True):
        if how is not Access.DENIED:
            text = node.content or node.title
            shown[node.ref] = text if how is Access.READ else (await viewer.redacted(text))[0]
    return shown


router = page_router()


@router.get("/memory", openapi_extra=READER)
async def memory_page(request: Request, services: ServicesHere, caller: CallerHere) -> Response:
    """Show what was found, the newest where nothing is looked for."""
    search = MemorySearch.read(request.query_params)
    found: list[ShownMemory] = []
    has_more, problem = False, None
    try:
        found, has_more = await searched(services, caller, search)
    except (Problem, FilterInvalid) as error:
        problem = answered(error)
    remembered = await remembered_to_choose(services, caller)
    people = once((*remembered.people, *(one.memory.speaker for one in found)))
    sessions = once((*remembered.sessions, *(one.memory.session_id for one in found)))
    forgotten = request.query_params.get("forgotten", "")
    return await form_page(
        request,
        "memory.html",
        title="Memory",
        problem=problem,
        search=search,
        found=found,
        is_by_meaning=is_by_meaning_alone(one.memory.origins for one in found),
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
    return await form_page(
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
