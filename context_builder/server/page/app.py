"""The page is an application of its own, mounted under ``/ui``.

Style sheets, scripts and the icon are read once, and served by name only.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final, NamedTuple

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import RedirectResponse, Response

from context_builder.errors import ContextBuilderError
from context_builder.server.asgi.callers import PAGE, RateMiddleware, TurnMiddleware
from context_builder.server.asgi.framing import NO_TELEMETRY
from context_builder.server.page.logins import (
    CompressionMiddleware,
    FormLimitMiddleware,
    HardeningMiddleware,
    LoginMiddleware,
    Logins,
)
from context_builder.server.page.rendering import answer_error
from context_builder.server.page.views import (
    health,
    login,
    memory,
    packages,
    places,
    prompts,
    recordings,
    revisions,
    session,
    sessions,
)
from context_builder.server.problem import Missing, Problem, not_found
from context_builder.server.services import Services

static_files = APIRouter(include_in_schema=False)

_TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class _File(NamedTuple):
    content: bytes
    media_type: str
    etag: str


@cache
def _files() -> dict[str, _File]:
    found = {}
    for one in (files("context_builder.server.page") / "static").iterdir():
        if (media_type := _TYPES.get(one.name.rpartition(".")[2])) is not None:
            content = one.read_bytes()
            found[one.name] = _File(content, media_type, f'W/"{sha256(content).hexdigest()[:32]}"')
    return found


@static_files.get("/static/{name}")
async def static_file(name: str, request: Request) -> Response:
    """Return a file; browsers ask again each time whether it is another one."""
    file = _files().get(name)
    if file is None:
        raise not_found(Missing.ADDRESS)
    headers = {"Cache-Control": "no-cache", "ETag": file.etag}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)


VIEWS: Final = (
    login.router,
    static_files,
    sessions.router,
    session.router,
    revisions.router,
    recordings.router,
    prompts.router,
    packages.router,
    memory.router,
    health.router,
    places.router,
)
"""Routers whose paths follow ``/ui``."""

entrance = APIRouter(include_in_schema=False)


@entrance.get("/")
@entrance.get(PAGE)
async def enter() -> RedirectResponse:
    """Lead people who open the server's address to the page."""
    return RedirectResponse(f"{PAGE}/", 303)


def logins_of(services: Services) -> Logins:
    """Return the logins, which the first Redis server keeps."""
    return Logins(next(iter(services.sessions.servers)).redis, services.authenticator, services.secret)


def page_app(services: Services) -> FastAPI:
    """Return the page; its views are answered with these services."""
    logins = logins_of(services)
    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
        middleware=[
            Middleware(HardeningMiddleware),
            Middleware(CompressionMiddleware),
            Middleware(LoginMiddleware, logins=logins),
            Middleware(RateMiddleware, shares=services.shares),
            Middleware(FormLimitMiddleware),
            Middleware(TurnMiddleware, shares=services.shares),
        ],
        exception_handlers=dict.fromkeys(
            (Problem, HTTPException, RequestValidationError, ContextBuilderError, Exception), answer_error
        ),
    )
    app.state.services = services
    app.state.logins = logins
    app.state.health = health.HealthWatch(services)
    for router in VIEWS:
        app.include_router(router)
    return app
