"""What the agents' library would do its own way goes as it does elsewhere: bodies, errors, and the ends of streams."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from context_builder.server.guarded_route import read_json
from context_builder.server.problem import Missing, Problem, problem_response

RECHECK: Final = 0.5
"""Seconds after which the credential is looked up again."""

_REFUSALS: Final = {
    400: ("malformed", "this is no message of the Model Context Protocol"),
    404: ("not_found", Missing.ADDRESS),
    405: ("method_not_allowed", "this address is not for that method"),
    406: ("not_acceptable", "Accept has to name application/json and text/event-stream"),
    409: ("conflict", "there is such a stream already"),
    415: ("unsupported_media_type", "the body has to be JSON: Content-Type: application/json"),
}


class AgentsMiddleware:
    """Stands around what answers agents: refuses bodies before the library reads them, and tells its refusals as
    problems.

    A stream hears that its client has gone once the credential does not hold, or on ``stopping``.
    """

    def __init__(self, app: ASGIApp, stopping: asyncio.Event) -> None:
        self._app = app
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            first = await receive()
            if first["type"] == "http.disconnect":
                return
            if body := first.get("body", b""):
                try:
                    await read_json(body)
                except Problem as problem:
                    await problem_response(problem)(scope, receive, send)
                    return
            receive = _again(first, receive)
        else:
            receive = self._receive_or_end(scope, receive)
        await _as_elsewhere(self._app, scope, receive, send)

    def _receive_or_end(self, scope: Scope, receive: Receive) -> Receive:
        still_holds = scope["state"]["still_holds"]

        async def receive_or_end() -> Message:
            received = asyncio.ensure_future(receive())
            try:
                while not (await asyncio.wait({received}, timeout=RECHECK))[0]:
                    if self._stopping.is_set() or not await still_holds():
                        return {"type": "http.disconnect"}
                return received.result()
            finally:
                received.cancel()

        return receive_or_end


def _again(first: Message, receive: Receive) -> Receive:
    messages = [first]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


async def _as_elsewhere(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Let the app answer; a refusal becomes a problem, and an answer that was not ended is."""
    refused = is_open = False

    async def send_as_elsewhere(message: Message) -> None:
        nonlocal refused, is_open
        if message["type"] == "http.response.start" and message["status"] in _REFUSALS:
            refused = True
            kind, detail = _REFUSALS[message["status"]]
            headers = {"Allow": "GET, POST"} if message["status"] == 405 else {}
            await problem_response(Problem(message["status"], kind, detail, headers=headers))(scope, receive, send)
        elif not refused:
            is_open = message["type"] == "http.response.start" or message.get("more_body", False)
            await send(message)

    await app(scope, receive, send_as_elsewhere)
    if is_open:
        await send({"type": "http.response.body", "body": b""})
