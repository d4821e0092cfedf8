"""Probes report whether the server is alive, and whether the services that it needs answer."""

from __future__ import annotations

import asyncio
from typing import Final

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from context_builder.errors import ContextBuilderError
from context_builder.server.guarded_route import ServicesHere
from context_builder.server.problem import Problem
from context_builder.storage.redis_availability import translated

router = APIRouter(include_in_schema=False)

PATIENCE: Final = 2.0
"""Seconds that Redis and the database have to answer."""


@router.get("/livez")
async def livez() -> PlainTextResponse:
    """Answer, if the process does."""
    return PlainTextResponse("ok\n")


@router.get("/readyz")
async def readyz(services: ServicesHere) -> PlainTextResponse:
    """Answer 200 once Redis and the database answer, else 503."""
    try:
        async with asyncio.timeout(PATIENCE):
            async with translated():
                for server in services.sessions.servers:
                    await server.redis.ping()
            await services.database.ping()
    except (ContextBuilderError, TimeoutError):
        raise Problem(503, "not_ready", "Redis or the database does not answer") from None
    return PlainTextResponse("ok\n")
