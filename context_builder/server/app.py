"""The application combines the HTTP routes with the middleware around them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from context_builder import __version__
from context_builder.errors import ContextBuilderError
from context_builder.server import problem
from context_builder.server.agent_server import AgentsMiddleware
from context_builder.server.asgi.callers import (
    PAGE,
    AuthenticationMiddleware,
    BodyLimitMiddleware,
    RateMiddleware,
    TurnMiddleware,
    current_caller,
)
from context_builder.server.asgi.framing import (
    NO_TELEMETRY,
    FailureMiddleware,
    FramingMiddleware,
    HostMiddleware,
    TraceMiddleware,
)
from context_builder.server.guarded_route import ServicesHere
from context_builder.server.page.app import entrance, page_app
from context_builder.server.routes import (
    artifacts,
    documentation,
    events,
    memories,
    packages,
    policies,
    sessions,
    turns,
)
from context_builder.server.services import Services
from context_builder.storage.redis_availability import translated

ROUTERS = (
    artifacts.router,
    sessions.router,
    events.router,
    turns.router,
    memories.router,
    packages.router,
    policies.router,
)
"""Routers of guarded routes."""


probes = APIRouter(include_in_schema=False)

PATIENCE: Final = 2.0
"""Seconds that Redis and the database have to answer a probe."""


@probes.get("/livez")
async def livez() -> PlainTextResponse:
    """Answer, if the process does."""
    return PlainTextResponse("ok\n")


@probes.get("/readyz")
async def readyz(services: ServicesHere) -> PlainTextResponse:
    """Answer 200 once Redis and the database answer, else 503."""
    try:
        async with asyncio.timeout(PATIENCE):
            async with translated():
                for server in services.sessions.servers:
                    await server.redis.ping()
            await services.database.ping()
    except (ContextBuilderError, TimeoutError):
        raise problem.Problem(503, "not_ready", "Redis or the database does not answer") from None
    return PlainTextResponse("ok\n")


def create_app(services: Services) -> FastAPI:
    """Return the application, which answers with these services; at ``/mcp`` to agents. Loading MCP takes a second."""
    from mcp.server.transport_security import TransportSecuritySettings

    from context_builder.server.agent_server import agent_server

    agents = agent_server(services, current_caller)
    guarded_here = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    # In one piece, not as a stream of events: large answers are put into it where a mark stands for them.
    mounted = agents.streamable_http_app(json_response=True, stateless_http=True, transport_security=guarded_here)

    page = page_app(services)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        async with agents.session_manager.run(), page.state.health.watching():
            yield

    app = FastAPI(
        title="context_builder",
        version=__version__,
        summary="Live conversation memory, and packages of context that fit.",
        description=(
            "Names in JSON are in camelCase, but for a session's state and messages. Bodies may have them in "
            "snake_case, too: `tokenBudget` or `token_budget`. Answers may get further fields."
        ),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
        lifespan=life,
        generate_unique_id_function=lambda route: route.name,
        middleware=[
            Middleware(ProxyHeadersMiddleware, trusted_hosts=list(services.trusted_proxies)),
            Middleware(TraceMiddleware),
            Middleware(FailureMiddleware),
            Middleware(FramingMiddleware),
            Middleware(HostMiddleware, names=services.names),
            Middleware(AuthenticationMiddleware, authenticator=services.authenticator),
            Middleware(RateMiddleware, shares=services.shares),
            Middleware(BodyLimitMiddleware),
            Middleware(TurnMiddleware, shares=services.shares),
        ],
        exception_handlers=dict.fromkeys(
            (problem.Problem, HTTPException, RequestValidationError, ContextBuilderError), problem.answer
        ),
    )
    app.state.services = services
    for route in mounted.routes:
        if isinstance(route, Route):
            route.app = AgentsMiddleware(route.app, services.stopping)
    app.router.routes += mounted.routes
    for router in ROUTERS:
        app.include_router(router, responses=_PROBLEMS)
    app.include_router(probes)
    app.include_router(entrance)
    app.mount(PAGE, page)
    app.include_router(documentation.router)
    documentation.describe(app)
    return app


_PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {"description": "A problem document (RFC 9457)", "model": problem.ProblemDocument}
}
