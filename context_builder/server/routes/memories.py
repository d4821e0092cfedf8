"""Routes that search and delete long-term memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import Query

from context_builder.knowledge.artifact import CamelModel, Time
from context_builder.knowledge.govern import memory_sources, shared_words
from context_builder.knowledge.governance import Access
from context_builder.knowledge.local import said_ref
from context_builder.memory.filter import LONGEST_NAME, memory_filter
from context_builder.memory.memory import MemoryFilter, MemoryQuery, SearchResult
from context_builder.server.access.caller import Caller, Role
from context_builder.server.guarded_route import READER, CallerHere, ServicesHere, guarded_router
from context_builder.server.services import Services

router = guarded_router("memories")

PREFERENCE: Final = "preference"

NOTE: Final = "note"
"""Kind of what somebody wants remembered, outside of any session."""

MOST_FORGOTTEN: Final = 300
"""Memories that are forgotten at once."""

LONGEST_QUERY: Final = 8_000
"""Characters of what is looked for."""

_ROUNDS: Final = 3
"""Further searches without the sessions that the caller may not see."""

_WIDER: Final = 4
"""Times as many memories that are looked for as are wanted: some may be found by what the caller does not see."""

_MOST_ASKED: Final = 1_000


class FoundMemory(CamelModel):
    """A memory that was found; ``score``, 0 to 1, is its similarity to the query."""

    id: str
    text: str
    kind: str
    session_id: str | None
    user_id: str | None
    speaker: str | None
    time: Time | None
    position: int | None
    tags: tuple[str, ...]
    metadata: dict[str, Any]
    score: float
    origins: tuple[str, ...]


class MemoriesAnswer(CamelModel):
    """Memories, the best first."""

    memories: list[FoundMemory]


@router.get("/memories/search", openapi_extra=READER)
async def search_memories(
    services: ServicesHere,
    caller: CallerHere,
    q: Annotated[str, Query(max_length=LONGEST_QUERY, description="What to look for; empty for the newest.")] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 8,
    speaker: Annotated[str, Query(max_length=LONGEST_NAME, description="Who said it: a whole name.")] = "",
    session: Annotated[str, Query(max_length=LONGEST_NAME, description="Session in which it was said.")] = "",
    since: Annotated[str, Query(max_length=40, description="First day or moment, such as 2026-03-02, in UTC.")] = "",
    until: Annotated[str, Query(max_length=40, description="Last day, or moment before which it was said.")] = "",
    kind: Annotated[list[str], Query(max_length=20, description="Kinds, such as message or point.")] = [],  # noqa: B006
) -> MemoriesAnswer:
    """Return what the caller's tenant remembers that is like the query, of what the filters let through."""
    where = memory_filter(speaker=speaker, session=session, since=since, until=until, kinds=kind)
    return MemoriesAnswer(memories=await found_memories(services, caller, MemoryQuery(q, limit, filter=where)))


async def found_memories(services: Services, caller: Caller, query: MemoryQuery) -> list[FoundMemory]:
    """Return the best memories that the caller may see; what it may not takes no place and changes no score."""
    where = replace(
        query.filter,
        sensitivities=tuple(sorted((await services.packages.viewer.standing(caller.agent)).sensitivities)),
        without_kinds=() if Role.ADMIN in caller.roles else (PREFERENCE,),
    )
    # Looked for more widely from the start, so that neither the answer nor its time tells what was masked.
    asked = replace(query, limit=min(_WIDER * query.limit, _MOST_ASKED), filter=where)
    for last in (False,) * _ROUNDS + (True,):
        found = await services.memory.search(caller.tenant_id, asked)
        seen, hidden = await _seen(services, caller, found)
        shown = [await _answer(services, query, one, how) for one, how in seen]
        answers = [one for one in shown if one is not None]
        is_full = len(answers) >= query.limit and not any(hidden)
        was_masked = len(answers) < len(shown) and len(found) == asked.limit
        if last or not (hidden or was_masked) or is_full or len(found) < asked.limit >= _MOST_ASKED:
            break
        without = tuple(sorted({*asked.filter.without_sessions, *filter(None, hidden)}))
        more = min(_WIDER * asked.limit, _MOST_ASKED)
        asked = replace(asked, limit=more, filter=replace(asked.filter, without_sessions=without))
    return sorted(answers, key=lambda one: -one.score)[: query.limit] if query.text.strip() else answers[: query.limit]


async def memories_of(services: Services, caller: Caller, ids: Sequence[str]) -> list[FoundMemory]:
    """Return the memories of these ids that the caller may see."""
    if not ids:
        return []
    wanted = tuple(dict.fromkeys(ids))
    found = await found_memories(services, caller, MemoryQuery("", len(wanted), filter=MemoryFilter(ids=wanted)))
    return [one for one in found if one.id in wanted]


async def forget_memories(services: Services, caller: Caller, ids: Sequence[str]) -> set[str]:
    """Forget the memories that the caller may see, everywhere, and return their ids; the others are not there.

    Raises :class:`CannotForget` as the memory does.
    """
    memories = await memories_of(services, caller, ids)
    await services.memory.forget(caller.tenant_id, ids=[one.id for one in memories])
    refs = [ref for one in memories if (ref := said_ref(one)) is not None]
    await services.packages.erasure.forget(caller.tenant_id, refs)
    return {one.id for one in memories}


async def _seen(
    services: Services, caller: Caller, found: Sequence[SearchResult]
) -> tuple[list[tuple[SearchResult, Access]], set[str]]:
    """Return what the caller may see, and the sessions of which it may see nothing; empty for other memories.

    A person's preferences are for the turns of that person, and for admins.
    """
    sources = await memory_sources(caller.tenant_id, [one.memory for one in found], services.knowledge.sensitivities)
    access = await services.packages.viewer.access(caller.agent, sources) if found else []
    is_admin = Role.ADMIN in caller.roles
    seen: list[tuple[SearchResult, Access]] = []
    hidden: set[str] = set()
    for one, how in zip(found, access, strict=True):
        if how is Access.DENIED or (one.memory.kind == PREFERENCE and not is_admin):
            hidden.add(one.memory.session_id or "" if how is Access.DENIED else "")
        else:
            seen.append((one, how))
    shown = {one.memory.session_id for one, _ in seen}
    return seen, {one if one not in shown else "" for one in hidden}


async def _answer(services: Services, query: MemoryQuery, found: SearchResult, access: Access) -> FoundMemory | None:
    """Return a memory as it may be seen; None for one that was found by nothing that is seen of it."""
    memory, score = found.memory, found.score
    text, speaker, tags, metadata = memory.text, memory.speaker, memory.tags, dict(memory.metadata)
    if access is Access.REDACTED:
        text, name, *rest = await services.packages.viewer.redacted(text, speaker or "", *tags)
        speaker, tags, metadata = name if speaker is not None else None, tuple(rest), {}
        if text != memory.text and query.text.strip():
            score = shared_words(query.text, text)  # as it was, it would tell what was taken out
            if not score:
                return None
    return FoundMemory(
        id=memory.id,
        text=text,
        kind=memory.kind,
        session_id=memory.session_id,
        user_id=memory.user_id,
        speaker=speaker,
        time=memory.time,
        position=memory.position,
        tags=tags,
        metadata=metadata,
        score=score,
        origins=found.origins,
    )
