"""Places are what the palette leads to: sessions, projects and packages that the caller may see."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final
from urllib.parse import quote

import orjson
from fastapi import Request, Response

from context_builder.errors import ContextBuilderError
from context_builder.knowledge.revision import RecentPackage
from context_builder.server.access.caller import Caller, Role
from context_builder.server.asgi.callers import PAGE
from context_builder.server.guarded_route import READER, CallerHere, ServicesHere
from context_builder.server.page.choices import documents_to_choose
from context_builder.server.page.page_route import page_router
from context_builder.server.page.views.sessions import Words, seen_sessions
from context_builder.server.services import Services

router = page_router()

MOST_OF_A_KIND: Final = 6
MOST_PACKAGES: Final = 50
"""Newest packages that are searched."""

_LONGEST_NAME: Final = 120


@router.get("/data/places", openapi_extra=READER)
async def places(request: Request, services: ServicesHere, caller: CallerHere, q: Words = "") -> Response:
    """Return the places whose names have all words; without words the newest."""
    sessions, documents, packages = await asyncio.gather(
        seen_sessions(services, caller, q), documents_to_choose(services, caller), _packages(services, caller)
    )
    found = [
        *_places("session", ((row.session_id, f"sessions/{quote(row.session_id, safe='')}") for row in sessions.rows)),
        *_places(
            "project", _fitting(q, ((one, f"packages?project={quote(one, safe='')}") for one in documents.projects))
        ),
        *_places("package", _fitting(q, ((one.intent, f"packages/{one.package_id}") for one in packages))),
    ]
    return Response(orjson.dumps(found), media_type="application/json")


async def _packages(services: Services, caller: Caller) -> list[RecentPackage]:
    """Return the newest packages of the caller, to an admin all; none while the database is away."""
    with suppress(ContextBuilderError):
        return await services.packages.recent(caller.agent, MOST_PACKAGES, of_others=Role.ADMIN in caller.roles)
    return []


def _fitting(words: str, named: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    sought = words.casefold().split()
    return ((name, path) for name, path in named if all(word in name.casefold() for word in sought))


def _places(kind: str, named: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    made = ({"kind": kind, "name": name[:_LONGEST_NAME], "path": f"{PAGE}/{path}"} for name, path in named)
    return [one for one, _ in zip(made, range(MOST_OF_A_KIND), strict=False)]
