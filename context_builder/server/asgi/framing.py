"""What HTTP and browsers ask of a server before a call is looked at: failures, framing, and its own names alone.

Every call belongs to a trace (W3C Trace Context): the caller's, or one that begins here.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import structlog
from fastapi.telemetry import TelemetryConfig
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from context_builder.server.problem import Problem, answered, problem_response
from context_builder.tracing import CURRENT_TRACE, TRACEPARENT, TraceContext, recorded_span, span

NO_TELEMETRY: Final = TelemetryConfig(tracing=False, metrics=False, logs=False, auto_configure=False)
"""Turns off what FastAPI would record of a call where a tracer is set up: the query, with what is searched for and with
login codes, and the texts of exceptions. :class:`TraceMiddleware` tells the route alone."""
_HARDENING: Final = {b"cache-control": b"no-store", b"x-content-type-options": b"nosniff"}
"""Of every answer that says nothing else: it is one caller's, and is what it says it is."""


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

        token = CURRENT_TRACE.set(trace)
        try:
            with structlog.contextvars.bound_contextvars(trace_id=trace.trace_id):
                await self._app(scope, receive, send_with_trace)
        finally:
            CURRENT_TRACE.reset(token)
            if current is not None and (route := getattr(scope.get("route"), "path", "")):
                current.update_name(f"{scope['method']} {_mounted(scope)}{route}")


def _mounted(scope: Scope) -> str:
    """Return the path below which the route's app is mounted, without that of a proxy."""
    path: str = scope.get("root_path", "")
    return path.removeprefix(scope.get("app_root_path", path))


class FramingMiddleware:
    """Answers 400, and closes, where a body has two lengths; answers ``HEAD`` as ``GET``, without the body.

    A proxy that goes by the other length would take the rest of the body for the next request (RFC 9112, 6.3).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        names = {name for name, _ in scope["headers"]}
        if {b"content-length", b"transfer-encoding"} <= names:
            detail = "a body has either Content-Length or Transfer-Encoding"
            refused = Problem(400, "malformed", detail, headers={"Connection": "close"})
            await problem_response(refused)(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            await _head(self._app, scope, receive, send)
            return
        await self._app(scope, receive, send)


async def _head(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    is_answered = False

    async def receive_or_gone() -> Message:
        return {"type": "http.disconnect"} if is_answered else await receive()

    async def send_head(message: Message) -> None:
        nonlocal is_answered
        if message["type"] == "http.response.start":
            await send(message)
            await send({"type": "http.response.body", "body": b""})
            is_answered = True

    await app({**scope, "method": "GET"}, receive_or_gone, send_head)


class FailureMiddleware:
    """Answers 500 if the answer has not begun, and otherwise breaks it off."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = False

        async def noting(message: Message) -> None:
            nonlocal began
            began = began or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception as error:  # of any kind: whoever asked gets a problem document
            problem = answered(error)
            if scope["type"] != "http":
                raise
            if not began:
                await problem_response(problem)(scope, receive, send)


_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def is_loopback(host: str) -> bool:
    """Return whether an address, or each that a name stands for, leads to this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)} if host else set()
    except (OSError, UnicodeError):
        return False
    return bool(found) and all(ip_address(one.partition("%")[0]).is_loopback for one in found)


@dataclass(frozen=True, slots=True)
class HostNames:
    """Knows the names of a server that listens on ``address``: its own, and ``further`` ones.

    An address in numbers cannot be made to mean another one, so where all of the network may ask, each is taken.
    """

    address: str
    further: frozenset[str] = frozenset()

    @classmethod
    def of(cls, address: str, further: Iterable[str] = ()) -> HostNames:
        own = () if is_loopback(address) else (socket.gethostname(), socket.getfqdn())
        return cls(address, frozenset(name.strip().lower() for name in (*own, *further) if name.strip()))

    def knows(self, host: str) -> bool:
        """Return whether a ``Host`` header, with or without a port, names this server."""
        if (named := _host_and_port(host, "http")) is None:
            return False
        name = named[0]
        if name in {"localhost", self.address.lower()} or name in self.further:
            return True
        try:
            address = ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not is_loopback(self.address)


_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:\[\]/?#@]+)(?::[0-9]{0,5})?")


def _host_and_port(host: str, scheme: str) -> tuple[str, int] | None:
    if not host.isascii() or not _HOST.fullmatch(host):
        return None
    try:
        parts = urlsplit(f"//{host}")
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname:
        return None
    return parts.hostname, _DEFAULT_PORTS.get(scheme, 0) if port is None else port


def is_same_origin(origin: str, host: str) -> bool:
    """Return whether a page of ``origin`` was served under the ``Host`` that it asks."""
    scheme, separator, rest = origin.partition("://")
    if not separator or scheme not in _DEFAULT_PORTS:
        return False
    named = _host_and_port(rest, scheme)
    return named is not None and named == _host_and_port(host, scheme)


class HostMiddleware:
    """Answers 403 to a foreign ``Host`` or ``Origin``, whoever asks."""

    def __init__(self, app: ASGIApp, names: HostNames) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            hosts, origins = (
                [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]
                for wanted in (b"host", b"origin")
            )
            if len(hosts) != 1 or not self._names.knows(hosts[0]):
                await _refuse("Host", scope, receive, send)
                return
            if any(not is_same_origin(origin, hosts[0]) for origin in origins):
                await _refuse("Origin", scope, receive, send)
                return
        await self._app(scope, receive, send)


async def _refuse(header: str, scope: Scope, receive: Receive, send: Send) -> None:
    problem = Problem(403, f"foreign_{header.lower()}", f"the header {header} names another server than this one")
    await problem_response(problem)(scope, receive, send)
