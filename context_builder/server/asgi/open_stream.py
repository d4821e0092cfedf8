"""A stream that a library keeps open ends with its credential, or when the server stops, as the server's own do."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

AGENTS: Final = "/mcp"
"""Path at which agents are answered; to read it opens a stream."""

RECHECK: Final = 0.5
"""Seconds after which the credential is looked up again."""


class OpenStreamMiddleware:
    """Lets the agents' library hear that the client has gone once the credential does not hold, or on ``stopping``."""

    def __init__(self, app: ASGIApp, stopping: asyncio.Event) -> None:
        self._app = app
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] != AGENTS:
            await self._app(scope, receive, send)
            return
        still_holds = scope["state"]["still_holds"]
        is_open = False

        async def receive_or_end() -> Message:
            received = asyncio.ensure_future(receive())
            try:
                while not (await asyncio.wait({received}, timeout=RECHECK))[0]:
                    if self._stopping.is_set() or not await still_holds():
                        return {"type": "http.disconnect"}
                return received.result()
            finally:
                received.cancel()

        async def noting(message: Message) -> None:
            nonlocal is_open
            is_open = message["type"] == "http.response.start" or message.get("more_body", False)
            await send(message)

        await self._app(scope, receive_or_end, noting)
        if is_open:
            await send({"type": "http.response.body", "body": b""})
