"""The page is an application of its own, mounted under ``/ui``."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import RedirectResponse

from context_builder.errors import ContextBuilderError
from context_builder.server.asgi.callers import PAGE, RateMiddleware, TurnMiddleware
from context_builder.server.asgi.framing import NO_TELEMETRY
from context_builder.server.page import static_files
from context_builder.server.page.login_middleware import (
    CompressionMiddleware,
    FormLimitMiddleware,
    HardeningMiddleware,
    LoginMiddleware,
)
from context_builder.server.page.logins import Logins
from context_builder.server.page.rendering import answer_error
from context_builder.server.page.views import (
    health,
    login,
    memory,
    packages,
    prompts,
    recordings,
    revisions,
    session,
    sessions,
)
from context_builder.server.problem import Problem
from context_builder.server.services import Services

VIEWS: Final = (
    login.router,
    static_files.router,
    sessions.router,
    session.router,
    revisions.router,
    recordings.router,
    prompts.router,
    packages.router,
    memory.router,
    health.router,
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
    for router in VIEWS:
        app.include_router(router)
    return app
