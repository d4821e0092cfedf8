"""Every call belongs to a trace (W3C Trace Context): the caller's, or one that begins here."""

from __future__ import annotations

import re
from contextvars import ContextVar
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Final

import structlog
from fastapi.telemetry import TelemetryConfig
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from context_builder.tracing import span, traceparent

_PARENT: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_LONGEST: Final = 512

NO_TELEMETRY: Final = TelemetryConfig(tracing=False, metrics=False, logs=False, auto_configure=False)
"""Turns off what FastAPI would tell of a call where a tracer is set up: the query, with what is searched for and with
login codes, and the texts of exceptions. :class:`TraceMiddleware` tells the route alone."""
_HARDENING: Final = {b"cache-control": b"no-store", b"x-content-type-options": b"nosniff"}
"""Of every answer that says nothing else: it is one caller's, and is what it says it is."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Holds the trace that a call belongs to, in hexadecimal; ``span_id`` is the call's own."""

    trace_id: str
    span_id: str
    flags: str = "01"

    @property
    def traceparent(self) -> str:
        """Return the header that hands the trace on."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


_CURRENT: ContextVar[Trace | None] = ContextVar("trace", default=None)


def current_trace() -> Trace:
    """Return the trace of the call that is being answered; outside of any, a new one."""
    return _CURRENT.get() or trace_of([])


def trace_of(parents: list[bytes]) -> Trace:
    """Return the trace that the ``traceparent`` headers name; a new one unless there is one that is valid."""
    found = _PARENT.fullmatch(parents[0]) if len(parents) == 1 and len(parents[0]) <= _LONGEST else None
    if found is not None:
        version, trace_id, parent_id, flags, more = found.groups()
        is_known = version != b"ff" and (version != b"00" or more is None)
        if is_known and trace_id.strip(b"0") and parent_id.strip(b"0"):
            return Trace(trace_id.decode(), token_hex(8), flags.decode())
    return Trace(token_hex(16), token_hex(8))


def _recorded(trace: Trace) -> Trace:
    """Return the trace with the span that is recorded for the call, if one is."""
    found = _PARENT.fullmatch(traceparent().encode())
    return trace if found is None else Trace(found[2].decode(), found[3].decode(), found[4].decode())


class TraceMiddleware:
    """Finds the trace of a call, and names it in the answer's ``X-Trace-Id`` and in what is logged meanwhile."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        parents = [value for name, value in scope["headers"] if name == b"traceparent"]
        parent = parents[0].decode("latin-1") if len(parents) == 1 else ""
        with span(scope["method"], parent=parent, kind="SERVER") as current:
            await self._in_trace(_recorded(trace_of(parents)), scope, receive, send, current)

    async def _in_trace(self, trace: Trace, scope: Scope, receive: Receive, send: Send, current: Any) -> None:
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
                current.update_name(f"{scope['method']} {route}")
