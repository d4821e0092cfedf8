"""Every route declares the role that it requires; the role is checked before the body is read."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from context_builder.server.access.caller import Role
from context_builder.server.asgi.authentication import current_caller
from context_builder.server.problem import Problem

ROLE: Final = "x-role"
"""Names a route's role among what it is given."""

READER: Final[dict[str, Any]] = {ROLE: Role.READER.value}
WRITER: Final[dict[str, Any]] = {ROLE: Role.WRITER.value}
ADMIN: Final[dict[str, Any]] = {ROLE: Role.ADMIN.value}
"""What a route is given as ``openapi_extra``; one without cannot be made."""


def guarded_router(tag: str) -> APIRouter:
    """Return a router whose routes each take a role."""
    return APIRouter(tags=[tag], route_class=GuardedRoute)


class _StrictRequest(Request):
    """Reads JSON as the standard has it: UTF-8, no NaN, no half of a surrogate pair, nested a thousand times."""

    async def json(self) -> Any:
        return orjson.loads(await self.body())


class GuardedRoute(APIRoute):
    """Answers 403 to callers whose roles do not include the route's."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        needed = Role((self.openapi_extra or {})[ROLE])

        async def guarded(request: Request) -> Response:
            if not current_caller().may(needed):
                raise Problem(403, "forbidden", f"this needs the role {needed.value}")
            return await handler(_StrictRequest(request.scope, request.receive))

        return guarded
