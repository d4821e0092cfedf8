"""Routes that search and delete long-term memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import Query

from context_builder.knowledge.access import memory_sources, shared_words
from context_builder.knowledge.artifact import CamelModel, Time
from context_builder.knowledge.governance import Access
from context_builder.memory.memory import MemoryQuery, SearchResult
from context_builder.server.access.caller import Caller, Role
from context_builder.server.guarded_route import READER, guarded_router
from context_builder.server.services import CallerHere, Services, ServicesHere

router = guarded_router("memories")

PREFERENCE: Final = "preference"

_ROUNDS: Final = 3
"""Further searches without the sessions that the caller may not see."""

_MOST_ASKED: Final = 1_000


class FoundMemory(CamelModel):
    """Holds a memory that was found; ``score``, 0 to 1, is how alike the query it is."""

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
    """Holds memories, the best first."""

    memories: list[FoundMemory]


@router.get("/memories/search", openapi_extra=READER)
async def search_memories(
    services: ServicesHere,
    caller: CallerHere,
    q: Annotated[str, Query(max_length=8_000, description="What is looked for; empty: the newest.")] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 8,
) -> MemoriesAnswer:
    """Return what the caller's tenant remembers that is like the query."""
    return MemoriesAnswer(memories=await found_memories(services, caller, MemoryQuery(q, limit)))


async def found_memories(services: Services, caller: Caller, query: MemoryQuery) -> list[FoundMemory]:
    """Return the best memories that the caller may see; what it may not takes no place and changes no score."""
    asked = query
    for last in (False,) * _ROUNDS + (True,):
        found = await services.memory.search(caller.tenant_id, asked)
        seen, hidden = await _seen(services, caller, found)
        is_full = len(seen) >= query.limit and not any(hidden)
        if last or not hidden or is_full or len(found) < asked.limit >= _MOST_ASKED:
            break
        without = tuple(sorted({*asked.filter.without_sessions, *filter(None, hidden)}))
        more = min(4 * asked.limit, _MOST_ASKED)
        asked = replace(asked, limit=more, filter=replace(asked.filter, without_sessions=without))
    answers = [await _answer(services, query, one, how) for one, how in seen]
    return sorted(answers, key=lambda one: -one.score)[: query.limit] if query.text.strip() else answers[: query.limit]


async def _seen(
    services: Services, caller: Caller, found: Sequence[SearchResult]
) -> tuple[list[tuple[SearchResult, Access]], set[str]]:
    """Return what the caller may see, and the sessions of which it may see nothing; empty for other memories.

    A person's preferences are for the turns of that person, and for admins.
    """
    sources = await memory_sources(caller.tenant_id, [one.memory for one in found], services.knowledge.sensitivities)
    access = await services.packages.viewer.access(caller.agent, sources) if found else []
    is_admin = caller.may(Role.ADMIN)
    seen: list[tuple[SearchResult, Access]] = []
    hidden: set[str] = set()
    for one, how in zip(found, access, strict=True):
        if how is Access.DENIED or (one.memory.kind == PREFERENCE and not is_admin):
            hidden.add(one.memory.session_id or "" if how is Access.DENIED else "")
        else:
            seen.append((one, how))
    shown = {one.memory.session_id for one, _ in seen}
    return seen, {one if one not in shown else "" for one in hidden}


async def _answer(services: Services, query: MemoryQuery, found: SearchResult, access: Access) -> FoundMemory:
    memory, score = found.memory, found.score
    text, speaker, tags, metadata = memory.text, memory.speaker, memory.tags, dict(memory.metadata)
    if access is Access.REDACTED:
        text, name, *rest = await services.packages.viewer.redacted(text, speaker or "", *tags)
        speaker, tags, metadata = name if speaker is not None else None, tuple(rest), {}
        if text != memory.text and query.text.strip():
            score = shared_words(query.text, text)  # as it was, it would tell what was taken out
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
