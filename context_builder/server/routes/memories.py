"""Routes that search and delete long-term memories."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from context_builder.knowledge.access import memory_sources
from context_builder.knowledge.artifact import CamelModel, Time
from context_builder.knowledge.governance import Access
from context_builder.memory.memory import MemoryQuery, SearchResult
from context_builder.server.access.caller import Caller
from context_builder.server.guarded_route import READER, guarded_router
from context_builder.server.services import CallerHere, Services, ServicesHere

router = guarded_router("memories")


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
    """Return the best memories that the caller may see."""
    found = await services.memory.search(caller.tenant_id, query)
    memories, stated = [one.memory for one in found], services.knowledge.sensitivities
    sources = await memory_sources(caller.tenant_id, memories, stated)
    access = await services.packages.viewer.access(caller.agent, sources) if found else []
    return [
        await _answer(services, one, how) for one, how in zip(found, access, strict=True) if how is not Access.DENIED
    ]


async def _answer(services: Services, found: SearchResult, access: Access) -> FoundMemory:
    memory, metadata = found.memory, dict(found.memory.metadata)
    text = memory.text
    if access is Access.REDACTED:
        (text,), metadata = await services.packages.viewer.redacted(text), {}
    return FoundMemory(
        id=memory.id,
        text=text,
        kind=memory.kind,
        session_id=memory.session_id,
        user_id=memory.user_id,
        speaker=memory.speaker,
        time=memory.time,
        position=memory.position,
        tags=memory.tags,
        metadata=metadata,
        score=found.score,
        origins=found.origins,
    )
