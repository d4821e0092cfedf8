"""Choices are what a form offers, so that nobody has to type it: sessions, people, projects and documents that are
there, and that the caller may see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from context_builder.errors import ContextBuilderError
from context_builder.knowledge.governance import Access
from context_builder.knowledge.store import ArtifactFilter
from context_builder.memory.memory import MemoryQuery
from context_builder.server.access.api_keys import ApiKeys, subject_of
from context_builder.server.access.caller import Caller
from context_builder.server.routes.memories import found_memories
from context_builder.server.seen_session import access_to_sessions
from context_builder.server.services import Services

MOST_SESSIONS: Final = 200
MOST_DOCUMENTS: Final = 200
MOST_MEMORIES: Final = 200
"""Newest memories, whose speakers and users are offered."""


class Document(NamedTuple):
    """Names an artifact."""

    ref: str
    title: str


@dataclass(frozen=True, slots=True)
class Remembered:
    """The people whose words are remembered, and the sessions, the latest first."""

    people: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents that were changed last, and the projects that they belong to."""

    documents: tuple[Document, ...] = ()
    projects: tuple[str, ...] = ()


async def sessions_to_choose(services: Services, caller: Caller) -> list[str]:
    """Return the sessions that the caller may see, of the newest of each server, most recently active first."""
    newest = await services.sessions.servers.of_tenant(caller.tenant_id).newest(MOST_SESSIONS)
    access = await access_to_sessions(services, caller, newest)
    return [one for one in newest if access[one] is not Access.DENIED]


async def remembered_to_choose(services: Services, caller: Caller) -> Remembered:
    """Return whom and what the newest memories that the caller may see are of; nothing while the memory is away."""
    with suppress(ContextBuilderError):
        found = await found_memories(services, caller, MemoryQuery("", MOST_MEMORIES))
        people = once(one.speaker for one in found)
        return Remembered(
            people, once((*(one.user_id for one in found), *people)), once(one.session_id for one in found)
        )
    return Remembered()


async def documents_to_choose(services: Services, caller: Caller) -> Documents:
    """Return the documents that the caller may see, and their projects; nothing while the database is away."""
    with suppress(ContextBuilderError):
        refs = await services.knowledge.matching(caller.tenant_id, ArtifactFilter(), MOST_DOCUMENTS)
        nodes = await services.knowledge.nodes(caller.tenant_id, refs, 0)
        asked = [nodes[ref] for ref in refs if ref in nodes]
        access = await services.packages.viewer.access(caller.agent, [one.governed(caller.tenant_id) for one in asked])
        seen = [one for one, how in zip(asked, access, strict=True) if how is Access.READ]
        return Documents(tuple(Document(one.ref, one.title) for one in seen), once(one.project for one in seen))
    return Documents()


async def names_of_keys(services: Services, tenant_id: str) -> dict[str, str]:
    """Return the names of a tenant's API keys by who asks with them; nothing while the database is away."""
    with suppress(ContextBuilderError):
        keys = await ApiKeys(services.database, services.sessions.tenant_id).listed(tenant_id)
        return {subject_of(one["id"]): one["name"] for one in keys if one["name"]}
    return {}


def once(names: Iterable[str | None]) -> tuple[str, ...]:
    """Return the names that there are, each once."""
    return tuple(dict.fromkeys(name for name in names if name))


def with_chosen(offered: Sequence[str], *chosen: str) -> list[str]:
    """Return what is offered, and first what was chosen although it is not there."""
    return [*(one for one in once(chosen) if one not in offered), *offered]
