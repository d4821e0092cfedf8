"""This server answers ``/metrics``, ``/livez`` and ``/readyz`` beside a session when ``HTTP_PORT`` is set."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from context_builder.engines.engine import listen
from context_builder.errors import EngineError, SettingError


class QuietServer(uvicorn.Server):
    """Leaves signals to the command that runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def web_app(is_served: Callable[[], bool]) -> Starlette:
    """Return the app of the three pages; ``/readyz`` is 503 while the session is not served."""

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    async def livez(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        return PlainTextResponse("ok\n") if is_served() else PlainTextResponse("the session is not served\n", 503)

    return Starlette(routes=[Route("/metrics", metrics), Route("/livez", livez), Route("/readyz", readyz)])


@asynccontextmanager
async def serve_http(host: str, port: int, is_served: Callable[[], bool]) -> AsyncIterator[None]:
    """Serve the pages in the background. Raises :class:`SettingError` when the port cannot be had."""
    try:
        listener = listen(host, port)
    except EngineError as error:
        raise SettingError(f"HTTP_PORT: {error}") from None
    config = uvicorn.Config(web_app(is_served), log_config=None, access_log=False, lifespan="off")
    server = QuietServer(config)
    task = asyncio.create_task(server.serve(sockets=[listener]), name="http")
    try:
        yield
    finally:
        server.should_exit = True
        await task
