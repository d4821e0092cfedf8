"""An HTTP server that answers everything with the same status, as a gateway before the real one may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from context_builder.engines.engine import LOOPBACK

_ANSWER = "HTTP/1.1 {} Because\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}"


@asynccontextmanager
async def refusing(status: int, body: str = "<html>no</html>", kind: str = "text/html") -> AsyncIterator[str]:
    """Its URL."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(_ANSWER.format(status, kind, len(body), body).encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, LOOPBACK, 0) as server:
        yield f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}"
