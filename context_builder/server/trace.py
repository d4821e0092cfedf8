"""Every call belongs to a trace (W3C Trace Context): the caller's, or one that begins here."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final

import structlog
from fastapi.telemetry import TelemetryConfig
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from context_builder.tracing import TRACEPARENT, TraceContext, recorded_span, span

NO_TELEMETRY: Final = TelemetryConfig(tracing=False, metrics=False, logs=False, auto_configure=False)
"""Turns off what FastAPI would record of a call where a tracer is set up: the query, with what is searched for and with
login codes, and the texts of exceptions. :class:`TraceMiddleware` tells the route alone."""
_HARDENING: Final = {b"cache-control": b"no-store", b"x-content-type-options": b"nosniff"}
"""Of every answer that says nothing else: it is one caller's, and is what it says it is."""


_CURRENT: ContextVar[TraceContext | None] = ContextVar("trace", default=None)


def current_trace() -> TraceContext:
    """Return the trace of the call that is being answered; outside of any, a new one."""
    return _CURRENT.get() or TraceContext.new()


class TraceMiddleware:
    """Finds the trace of a call, and names it in the answer's ``X-Trace-Id`` and in what is logged meanwhile."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        parents = [value.decode("latin-1") for name, value in scope["headers"] if name == TRACEPARENT.encode()]
        parent = TraceContext.parse(parents[0]) if len(parents) == 1 else None
        with span(scope["method"], parent=parent, kind="SERVER") as current:
            trace = recorded_span() or (parent.child() if parent else TraceContext.new())
            await self._in_trace(trace, scope, receive, send, current)

    async def _in_trace(self, trace: TraceContext, scope: Scope, receive: Receive, send: Send, current: Any) -> None:
        added = {b"x-trace-id": trace.trace_id.encode(), **_HARDENING}

        async def send_with_trace(message: Message) -> None:
            if message["type"] == "http.response.start":
                if current is not None:
                    current.set_attribute("http.response.status_code", message["status"])
                given = message.get("headers", ())
                own = {name.lower() for name, _ in given}
                message["headers"] = [*given, *(item for item in added.items() if item[0] not in own)]
            await send(message)

        token = _CURRENT.set(trace)
        try:
            with structlog.contextvars.bound_contextvars(trace_id=trace.trace_id):
                await self._app(scope, receive, send_with_trace)
        finally:
            _CURRENT.reset(token)
            if current is not None and (route := getattr(scope.get("route"), "path", "")):
                current.update_name(f"{scope['method']} {_mounted(scope)}{route}")


def _mounted(scope: Scope) -> str:
    """Return the path below which the route's app is mounted, without that of a proxy."""
    path: str = scope.get("root_path", "")
    return path.removeprefix(scope.get("app_root_path", path))
