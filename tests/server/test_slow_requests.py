"""Who begins a request and does not come to its end is hung up on; others are not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from context_builder.server import serving
from tests.services.waiting import PATIENCE

HEAD = b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


@pytest.fixture
async def connect(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Connect]:
    """Opens a connection to a server that waits for half a second, and answers a second after it has a request."""
    monkeypatch.setattr(serving, "WHOLE", 0.5)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await asyncio.sleep(1)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
        await send({"type": "http.response.body", "body": b"whole"})

    config = uvicorn.Config(app, log_config=None, ws="none", lifespan="off")
    config.load()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: serving.Protocol(config, ServerState(), {}), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    yield lambda: asyncio.open_connection("127.0.0.1", port)
    server.close()


@pytest.mark.parametrize("begun", [b"", b"G", HEAD, HEAD + b"\r\n1"])
async def test_half_a_request_is_not_waited_for_long(connect: Connect, begun: bytes) -> None:
    reader, writer = await connect()
    writer.write(begun)
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await asyncio.wait_for(reader.readexactly(1), PATIENCE)
    writer.close()


async def test_nor_is_half_a_request_that_was_sent_behind_a_whole_one(connect: Connect) -> None:
    reader, writer = await connect()
    writer.write(HEAD + b"\r\n12" + HEAD + b"\r\n1")
    await asyncio.wait_for(reader.readuntil(b"whole"), PATIENCE)
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await asyncio.wait_for(reader.readexactly(1), PATIENCE)
    writer.close()


async def test_a_whole_request_is_answered_however_long_that_takes(connect: Connect) -> None:
    reader, writer = await connect()
    for _ in range(2):  # the second on the same connection
        for part in (HEAD, b"\r\n1", b"2"):
            writer.write(part)
            await writer.drain()
        answer = await asyncio.wait_for(reader.readuntil(b"whole"), PATIENCE)
        assert answer.startswith(b"HTTP/1.1 200")
    writer.close()


CHUNKED = b"POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


async def test_a_body_in_crumbs_is_refused_soon(connect: Connect) -> None:
    reader, writer = await connect()
    writer.write(CHUNKED + b"1\r\nx\r\n" * (serving.MOST_CRUMBS + 1))
    assert (await asyncio.wait_for(reader.read(100), PATIENCE)).startswith(b"HTTP/1.1 400")
    writer.close()


async def test_a_body_in_many_pieces_is_not(connect: Connect) -> None:
    reader, writer = await connect()
    writer.write(CHUNKED + (b"%x\r\n%s\r\n" % (2 * serving.CRUMB, b"xx" * serving.CRUMB)) * 2_000 + b"0\r\n\r\n")
    assert (await asyncio.wait_for(reader.read(100), PATIENCE)).startswith(b"HTTP/1.1 200")
    writer.close()
