"""Every route of the page says which role it takes; one that changes something checks the form's token, too.

A page with a form reports invalid input and keeps what was entered.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute

from context_builder.server.access.caller import Role
from context_builder.server.asgi.callers import current_caller
from context_builder.server.guarded_route import ROLE
from context_builder.server.page.logins import Login
from context_builder.server.page.rendering import render
from context_builder.server.problem import Problem

TOKEN_FIELD: Final = "csrf"  # noqa: S105 (a name)
TOKEN_HEADER: Final = "x-csrf-token"  # noqa: S105
_MOST_FIELDS: Final = 1_000


def page_router() -> APIRouter:
    """Return a router of views: each route is given ``openapi_extra=READER``, ``WRITER`` or ``ADMIN``."""
    return APIRouter(route_class=PageRoute, include_in_schema=False)


class PageRoute(APIRoute):
    """Answers 403 to people whose roles do not include the route's, and to forms that were made for another login."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        needed = Role((self.openapi_extra or {})[ROLE])

        async def guarded(request: Request) -> Response:
            if needed not in current_caller().roles:
                raise Problem(403, "forbidden", f"this needs the role {needed.value}")
            if request.method not in ("GET", "HEAD"):
                login: Login = request.scope["state"]["login"]
                token = request.headers.get(TOKEN_HEADER) or (await form_of(request)).get(TOKEN_FIELD, "")
                if not login.is_form_token(token):
                    raise Problem(
                        403, "stale_form", "this form is of an earlier login: go back, reload, and send it again"
                    )
            return await handler(request)

        return guarded


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form that was sent; of a name that comes twice the last."""
    return dict(await pairs_of(request))


async def pairs_of(request: Request) -> list[tuple[str, str]]:
    """Return the fields of a form that was sent, each as often as it came."""
    try:
        text = (await request.body()).decode("utf-8")
        return parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise Problem(422, "invalid_request", "this is no form that can be read") from None


FormHere = Annotated[dict[str, str], Depends(form_of)]
"""The fields of the form that was sent."""


async def form_page(
    request: Request, template: str, *, title: str, problem: Problem | None = None, **values: Any
) -> Response:
    """Return the page, with the status of the problem, if there is one, and its text as ``problem``."""
    status, detail = (200, "") if problem is None else (problem.status, problem.detail)
    return await render(request, template, title=title, status=status, problem=detail, **values)


async def values_of(request: Request, name: str) -> list[str]:
    """Return all values that a form sent under a name, such as those of ticked boxes."""
    return [value for key, value in await pairs_of(request) if key == name]
