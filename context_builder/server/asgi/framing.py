"""HTTP's own rules that neither uvicorn nor the framework keeps: two lengths of a body, and ``HEAD``."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from context_builder.server.problem import Problem, problem_response


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
