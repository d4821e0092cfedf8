"""A body is read here as a whole, up to a limit, before it is parsed."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from context_builder.server.asgi.authentication import is_public
from context_builder.server.problem import Problem, problem_response

MOST_BYTES: Final = 16 * 1024 * 1024
"""An artifact's two million characters, each escaped as JSON allows, fit in."""

MOST_ANONYMOUS_BYTES: Final = 2 * 1024 * 1024
"""Where who asks is not known yet: the longest form of the page fits in."""

READ_AWAY: Final = 4
"""Times the limit that is read and thrown away: who is cut off while sending does not see the answer."""


class BodyLimitMiddleware:
    """Answers 413 to a body of more than ``most`` bytes, whether declared or sent."""

    def __init__(self, app: ASGIApp, most: int = MOST_BYTES) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        most = min(self._most, MOST_ANONYMOUS_BYTES) if is_public(scope["path"]) else self._most
        told = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        body = bytearray()
        size = 0
        more = not told.isdigit() or int(told) <= READ_AWAY * most
        too_large = not more
        while more and size <= READ_AWAY * most:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            size += len(message.get("body", b""))
            if too_large := size > most:
                body.clear()
            more = message.get("more_body", False)
        if too_large:
            problem = Problem(413, "too_large", f"a body is at most {most:,} bytes", headers={"Connection": "close"})
            await problem_response(problem)(scope, receive, send)
            return
        await self._app(scope, _replayed(bytes(body), receive), send)


def _has_body(scope: Scope) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


def _replayed(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
