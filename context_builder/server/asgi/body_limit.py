"""A body is read here as a whole, up to a limit, before it is parsed."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import Final, Literal

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from context_builder.server.asgi.callers import PAGE, current_caller, is_public
from context_builder.server.problem import Problem, problem_response

MOST_BYTES: Final = 16 * 1024 * 1024
"""An artifact's two million characters, each escaped as JSON allows, fit in."""

USUAL_BYTES: Final = 2 * 1024 * 1024
"""Everything else that one is asked for fits in: a turn's query of 100,000 characters, each escaped, is the longest."""

MOST_ANONYMOUS_BYTES: Final = 64 * 1024
"""Where who asks is not known yet: a credential fits in."""

_LARGE: Final = re.compile(r"/knowledge/artifacts/.+|/knowledge/edges(?:/delete)?|/sessions/[^/]+/messages")
"""Paths whose bodies may be of :data:`MOST_BYTES`."""

PATIENCE: Final = 10
"""Seconds in which the body of somebody who is not known has to come in whole."""

READ_AWAY: Final = 4 * MOST_BYTES
"""Bytes that are read and thrown away: who is cut off while sending does not see the answer."""

MOST_HELD: Final = 256 * 1024 * 1024
"""Bytes of all bodies that have begun to come in, as they are declared."""

SHARE: Final = 4
"""Part of :data:`MOST_HELD` that one caller's tenant may take, and all who are not known together."""


class BodyLimitMiddleware:
    """Answers 413 to a body that is too large for its path, whether declared or sent, and 503 while bodies that come
    in slowly take all the room that there is for them.

    The page's are read by the page, once it knows who sends them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._held: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not has_body(scope) or scope["path"].startswith(f"{PAGE}/"):
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        if is_public(path):
            owner, most = "", MOST_ANONYMOUS_BYTES
        else:
            owner, most = current_caller().tenant_id, MOST_BYTES if _LARGE.fullmatch(path) else USUAL_BYTES
        await self.answer(scope, receive, send, owner, most)

    async def answer(self, scope: Scope, receive: Receive, send: Send, owner: str, most: int) -> None:
        """Read the body, and let the app answer it."""
        room = min(_declared(scope, most), most)
        if self._held[owner] + room > MOST_HELD // SHARE or self._held.total() + room > MOST_HELD:
            detail = "too many bodies are coming in at the same time; try again"
            problem = Problem(503, "busy", detail, headers={"Retry-After": "1", "Connection": "close"})
            await problem_response(problem)(scope, receive, send)
            return
        self._held[owner] += room
        try:
            async with asyncio.timeout(None if owner else PATIENCE):
                body = await _read(scope, receive, most)
        except TimeoutError:
            late = Problem(408, "timeout", f"the body did not come in {PATIENCE} s", headers={"Connection": "close"})
            await problem_response(late)(scope, receive, send)
            return
        finally:
            self._held[owner] -= room
            if not self._held[owner]:
                del self._held[owner]
        if body is None:
            return
        if body == "too large":
            problem = Problem(
                413, "too_large", f"a body here is at most {most:,} bytes", headers={"Connection": "close"}
            )
            await problem_response(problem)(scope, receive, send)
            return
        await self._app(scope, _replayed(body, receive), send)


async def _read(scope: Scope, receive: Receive, most: int) -> bytes | Literal["too large"] | None:
    """Return the body, or that it is too large; None when the sender has gone."""
    if _declared(scope, 0) > READ_AWAY:
        return "too large"
    body = bytearray()
    size = 0
    more = True
    while more and size <= READ_AWAY:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        piece = message.get("body", b"")
        size += len(piece)
        if size > most:
            body.clear()
        else:
            body += piece
        more = message.get("more_body", False)
    return "too large" if size > most else bytes(body)


def has_body(scope: Scope) -> bool:
    """Return whether a body is announced."""
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


def _declared(scope: Scope, otherwise: int) -> int:
    told = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    return int(told) if told.isdigit() else otherwise


def _replayed(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
