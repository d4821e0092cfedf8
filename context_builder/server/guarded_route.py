"""Every route declares the role that it requires; the role is checked before the body is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute

from context_builder.server.access.caller import Role
from context_builder.server.asgi.authentication import current_caller
from context_builder.server.json_body import validated
from context_builder.server.problem import SHOWN_NAME, Problem
from context_builder.server.repeated_calls import answered_once
from context_builder.server.services import Services

KEEP_THEIR_OWN: Final = frozenset({"build_package"})
"""Routes that know by themselves which of their calls came again."""

TELL_WHAT_WAS_SAID: Final = frozenset({"build_turn"})
"""Routes whose answers are made anew, of what the caller may see when it asks again."""

ROLE: Final = "x-role"
"""Names a route's role among what it is given."""

READER: Final[dict[str, Any]] = {ROLE: Role.READER.value}
WRITER: Final[dict[str, Any]] = {ROLE: Role.WRITER.value}
ADMIN: Final[dict[str, Any]] = {ROLE: Role.ADMIN.value}
"""What a route is given as ``openapi_extra``; one without cannot be made."""


def guarded_router(tag: str) -> APIRouter:
    """Return a router whose routes each take a role."""
    return APIRouter(tags=[tag], route_class=GuardedRoute)


class _ReadRequest(Request):
    """Has been read: ``json`` returns what the body was validated to, which is not validated again."""

    read: Any = None

    async def json(self) -> Any:
        return self.read


class GuardedRoute(APIRoute):
    """Answers 403 to callers whose roles do not include the route's, then 422 and 415 to what it does not know."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        needed = Role((self.openapi_extra or {})[ROLE])
        asked = (one for one in get_flat_params(self.dependant) if isinstance(one.field_info, Query))
        known = frozenset(one.alias for one in asked)

        async def guarded(request: Request) -> Response:
            if not current_caller().may(needed):
                raise Problem(403, "forbidden", f"this needs the role {needed.value}")
            check_query(request, known)
            read = _ReadRequest(request.scope, request.receive)
            if self.body_field is not None:
                body = await read.body()
                if body:
                    _check_is_json(request)
                    read.read = await validated(body, self.body_field)
            if request.method != "POST" or self.name in KEEP_THEIR_OWN:
                return await handler(read)
            services: Services = request.app.state.services
            keeps = self.name not in TELL_WHAT_WAS_SAID
            return await answered_once(services.functions, current_caller(), read, lambda: handler(read), keeps=keeps)

        return guarded


def check_query(request: Request, known: Collection[str]) -> None:
    """Raise :class:`Problem` for a parameter that the route does not know, or that is there twice."""
    seen: set[str] = set()
    for name, _ in request.query_params.multi_items():
        if name not in known:
            told = f"is not known here, but {', '.join(sorted(known)) or 'nothing'}"
        elif name in seen:
            told = "is there more than once"
        else:
            seen.add(name)
            continue
        at = f"query.{name if SHOWN_NAME.fullmatch(name) else '?'}"
        raise Problem(422, "invalid_request", f"{at}: {told}", errors=[{"at": at, "problem": told}])


def _check_is_json(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise Problem(415, "unsupported_media_type", "the body has to be JSON: Content-Type: application/json")
