"""Two real HTTP servers: one that redirects every request, and the one it redirects to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from context_builder.engines.engine import LOOPBACK


@dataclass
class Redirecting:
    """``url`` answers every request with ``status`` and ``location``; ``seen`` is what reached that address."""

    url: str
    status: int
    location: str
    asked: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)


@contextmanager
def redirecting(status: int = 307, location: str | None = None) -> Iterator[Redirecting]:
    """A server that redirects to another one, or to ``location``."""
    with _serving() as (target, to), _serving() as (source, url):
        here = Redirecting(url, status, to if location is None else location)
        source.answer = lambda request: _redirect(request, here)  # type: ignore[attr-defined]
        target.answer = lambda request: _note(request, here)  # type: ignore[attr-defined]
        yield here


def _redirect(request: BaseHTTPRequestHandler, here: Redirecting) -> None:
    here.asked.append(request.path)
    location = here.location + request.path if here.location.startswith("http") else here.location
    _answer(request, here.status, {"Location": location})


def _note(request: BaseHTTPRequestHandler, here: Redirecting) -> None:
    here.seen.append(f"{request.command} {request.path} {dict(request.headers)}")
    _answer(request, 200, {"Content-Type": "application/json"})


def _answer(request: BaseHTTPRequestHandler, status: int, headers: dict[str, str]) -> None:
    request.rfile.read(int(request.headers.get("Content-Length") or 0))
    body = b"{}"
    request.send_response(status)
    for name, value in {**headers, "Content-Length": str(len(body))}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(body)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.answer(self)  # type: ignore[attr-defined]

    def do_POST(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        return None


@contextmanager
def _serving() -> Iterator[tuple[ThreadingHTTPServer, str]]:
    server = ThreadingHTTPServer((LOOPBACK, 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="redirecting", daemon=True)
    thread.start()
    try:
        yield server, f"http://{LOOPBACK}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
