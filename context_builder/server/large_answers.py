"""A tool's large answer is written beside the loop, and put into the response where the MCP library left room for it.

The library validates, copies and writes what a tool returns several times, on the loop: of megabytes, in its way each
takes a tenth of a second. So it is given a mark instead.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from contextvars import ContextVar
from secrets import token_hex
from typing import Any, Final

from mcp.types import CallToolResult, TextContent
from pydantic_core import to_json
from starlette.types import Message, Send

LARGE: Final = 65_536
"""Characters of an answer that the library writes in some milliseconds."""

_room: Final[ContextVar[LargeAnswer | None]] = ContextVar("room", default=None)


class LargeAnswer:
    """Holds the large answer to one request, if there is one, by the marks that stand for it in the response."""

    def __init__(self) -> None:
        self._parts: list[tuple[bytes, bytes]] = []
        self._start: MutableMapping[str, Any] | None = None
        _room.set(self)

    def hold(self, text: str, returned: dict[str, Any]) -> CallToolResult:
        """Keep an answer, and return the result that stands for it."""
        mark = token_hex(16)
        self._parts = [(f'"{mark}"'.encode(), to_json(text)), (f'{{"{mark}":true}}'.encode(), to_json(returned))]
        return CallToolResult(content=[TextContent(text=mark)], structured_content={mark: True})

    def sending(self, send: Send) -> Send:
        """Return what sends a response with the answer in it, which the library writes in one piece."""

        async def send_whole(message: Message) -> None:
            if self._parts and message["type"] == "http.response.start":
                self._start = message
                return
            if self._start is not None:
                body = self._put_into(message["body"])
                headers = [one for one in self._start["headers"] if one[0].lower() != b"content-length"]
                await send({**self._start, "headers": [*headers, (b"content-length", str(len(body)).encode())]})
                message, self._start = {**message, "body": body}, None
            await send(message)

        return send_whole

    def _put_into(self, body: bytes) -> bytes:
        whole: list[bytes] = []
        for mark, written in self._parts:
            before, found, body = body.partition(mark)
            whole += (before, written if found else b"")
        return b"".join((*whole, body))


def tool_result(returned: dict[str, Any]) -> CallToolResult:
    """Return what a tool returned, as text and as a value; large, where the request is answered over HTTP, its mark.

    The text is not indented, as the library's would be: of what is nested deeply, indents are a hundred times as long.
    """
    text = to_json(returned).decode()
    if len(text) > LARGE and (room := _room.get()) is not None:
        return room.hold(text, returned)
    return CallToolResult(content=[TextContent(text=text)], structured_content=returned)
