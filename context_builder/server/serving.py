"""uvicorn serves on one socket until told to stop. Long answers end first, the others within a bound."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any, Final

import h11
import orjson
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from context_builder.engines.engine import listen
from context_builder.errors import EngineError, SettingError
from context_builder.server.health import QuietServer
from context_builder.server.problem import MEDIA_TYPE, Problem, problem_document
from context_builder.tracing import TraceContext

GRACE: Final = 3
"""Seconds that answers may take once the server is told to stop."""


GC_THRESHOLDS: Final = (20_000, 20, 20)
"""An answer makes some ten thousand objects, hardly any of them in cycles."""

WHOLE: Final = 120.0
"""Seconds in which a request has to come in whole: who only begins one, and another, must not take all connections."""


MOST_CRUMBS: Final = 1_024
"""Pieces in which a body may come in, however small they are."""

CRUMB: Final = 64
"""Bytes that the pieces of a body have on average, where it comes in more of them."""

_HEAD: Final = 64 * 1024
"""Bytes of a request's first line and headers."""


class _Connection(h11.Connection):
    """Takes a body in a million chunks of one byte for no request: to read each takes as long as to read a thousand."""

    _pieces = 0
    _bytes = 0

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._pieces = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._pieces += 1
            self._bytes += len(event.data)
            if self._pieces > MOST_CRUMBS and self._bytes < self._pieces * CRUMB:
                raise h11.RemoteProtocolError("the body comes in crumbs")
        return event


class Protocol(H11Protocol):
    """Answers what is not HTTP with a problem, too, and hangs up on who does not come to the end of a request."""

    _late: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn = _Connection(h11.SERVER, _HEAD)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._late = self.loop.call_later(WHOLE, transport.abort)

    def handle_events(self) -> None:
        super().handle_events()  # also of a request that was sent behind another, once that is answered
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop_waiting()
        elif self._late is None:
            self._late = self.loop.call_later(WHOLE, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def send_400_response(self, msg: str) -> None:
        del msg
        trace = TraceContext.new()
        document = problem_document(Problem(400, "malformed", "this is no HTTP request that can be read"), trace)
        body = orjson.dumps(document)
        head = (
            "HTTP/1.1 400 Bad Request\r\n"
            f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n"
            f"x-trace-id: {trace.trace_id}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


async def serve_app(
    app: FastAPI,
    host: str,
    port: int,
    *,
    stop: asyncio.Event,
    stopping: asyncio.Event,
    started: Callable[[], object] = lambda: None,
) -> None:
    """Serve until ``stop`` is set; then ``stopping`` is set first, on which long answers end.

    ``started`` is called once the port is had. Raises :class:`SettingError` when it cannot be.
    """
    try:
        listener = listen(host, port)
    except EngineError as error:
        raise SettingError(f"SERVE_HOST and SERVE_PORT: {error}") from None
    options: dict[str, Any] = {
        "log_config": None,
        "access_log": False,
        "lifespan": "on",
        "http": Protocol,
        "ws": "none",
        "proxy_headers": False,
        "server_header": False,
        "timeout_graceful_shutdown": GRACE,
    }
    server = QuietServer(uvicorn.Config(app, **options))

    async def stop_when_told() -> None:
        await stop.wait()
        stopping.set()
        server.should_exit = True

    task = asyncio.create_task(stop_when_told(), name="stop the server")
    try:
        started()
        gc.collect()
        gc.freeze()  # to look through all modules in the midst of an answer would take tens of milliseconds
        gc.set_threshold(*GC_THRESHOLDS)
        await asyncio.create_task(server.serve(sockets=[listener]), name="server")
        if not server.started:
            raise SettingError("SERVE_PORT: the server did not start")
    finally:
        task.cancel()
