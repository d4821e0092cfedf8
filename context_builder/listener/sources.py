"""Where messages of transcribers come from: a WebSocket that we open, those that relays open, standard input."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from threading import Semaphore, Thread
from typing import Any, BinaryIO, Final, cast

from websockets.asyncio.client import ClientConnection, connect, process_exception
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI, WebSocketException
from websockets.frames import CloseCode

from context_builder.config import check_url
from context_builder.engines.engine import LOOPBACK as LOOPBACK
from context_builder.engines.engine import listen
from context_builder.errors import EngineError, SettingError, TranscriptError
from context_builder.storage.urls import printable

LARGEST: Final = 16 * 2**20
"""Bytes of a message; no transcriber sends a thousandth of that."""

GRACE: Final = 1.0
"""Seconds in which what relays had sent when the server ended is read."""

FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 10.0
"""Seconds between two connections."""

_WAITING: Final = 100
"""Lines that are read ahead."""

Follow = Callable[[AsyncIterator[str | bytes]], Awaitable[None]]


class _Connect(connect):
    """Connects without following redirects: the authorization is for the server that was named."""

    def process_redirect(self, exc: Exception) -> Exception:
        return exc


async def from_websocket(url: str, authorization: str | None, follow: Follow, on_state: Callable[[str], None]) -> None:
    """Give ``follow`` the messages of each connection to ``url``, which is opened again whenever it ends.

    Pauses between two grow, until a connection brings a message. Raises :class:`SettingError` for an address that is
    none, and :class:`TranscriptError` when the server refuses.
    """
    server, pause = printable(url), FIRST_PAUSE
    try:
        check_url(url, "ws", "wss")
    except ValueError as error:
        raise SettingError(f"--from: {error}, as in ws://localhost:9090") from None
    headers = {"Authorization": authorization} if authorization else {}
    while True:
        received = _ConnectionMessages(on_state)
        try:
            async with _Connect(url, additional_headers=headers, max_size=LARGEST) as connection:
                on_state(f"connected to {server}")
                await follow(received.messages(connection))
            reason = "ended the connection"
        except InvalidURI:
            raise SettingError(f"--from: {server} is not an address such as ws://localhost:9090") from None
        except (OSError, TimeoutError, WebSocketException) as error:
            if process_exception(error) is not None:
                raise _refused(server, error) from None
            reason = f"does not answer ({type(error).__name__})"
        pause = FIRST_PAUSE if received.any else min(2 * pause, LONGEST_PAUSE)
        on_state(f"{server} {reason}; connecting again in {pause:g} s")
        await asyncio.sleep(pause)


def _refused(server: str, error: Exception) -> Exception:
    match error:
        case InvalidStatus():
            return TranscriptError(f"{server} refuses: HTTP status {error.response.status_code}")
        case InvalidHandshake():
            return TranscriptError(f"{server} speaks no WebSocket: {type(error).__name__}")
    return error


@asynccontextmanager
async def relays(port: int, follow: Follow, on_state: Callable[[str], None]) -> AsyncIterator[int]:
    """Serve a WebSocket for relays on this machine, and give its port; ``follow`` is given each one's messages.

    Pages in a browser, which name their origin, are refused. Raises :class:`SettingError` for a port that is taken.
    """

    following: set[asyncio.Task[Any]] = set()

    async def take(connection: ServerConnection) -> None:
        following.add(task := cast("asyncio.Task[Any]", asyncio.current_task()))
        try:
            await follow(_ConnectionMessages(on_state).messages(connection))
        finally:
            following.discard(task)

    try:
        listener = listen(LOOPBACK, port)
    except EngineError as error:
        raise SettingError(f"--port: {error}") from None
    server = await serve(take, sock=listener, origins=[None], max_size=LARGEST)
    try:
        yield next(iter(server.sockets)).getsockname()[1]
    finally:
        server.close()
        if following:
            await asyncio.wait(following, timeout=GRACE)
        for task in following:  # which may wait for Redis without end
            task.cancel()
        await server.wait_closed()


async def from_lines(source: BinaryIO | None = None) -> AsyncIterator[str | bytes]:
    """Yield the lines of ``source``, by default of standard input, which may be a pipe, a terminal or a file.

    Raises :class:`TranscriptError` when it cannot be read.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    places = Semaphore(_WAITING)
    unreadable: OSError | None = None

    def read() -> None:
        nonlocal unreadable
        with suppress(RuntimeError):  # the loop has ended: nobody listens any more
            try:
                stream = source or open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115 (see below)
                while line := stream.readline(LARGEST):
                    places.acquire()
                    loop.call_soon_threadsafe(lines.put_nowait, line)
            except OSError as error:
                unreadable = error
            finally:
                loop.call_soon_threadsafe(lines.put_nowait, b"")

    # A read cannot be interrupted, and dies with the program, which at its end would wait for sys.stdin's own lock.
    Thread(target=read, name="lines", daemon=True).start()
    while line := await lines.get():
        places.release()
        if line.strip():
            yield line
    if unreadable is not None:
        raise TranscriptError(f"standard input cannot be read: {unreadable.strerror}")


class _ConnectionMessages:
    """Passes a connection's messages on until it ends; ``any`` says whether there was one."""

    def __init__(self, on_state: Callable[[str], None]) -> None:
        self.any = False
        self._on_state = on_state

    async def messages(self, connection: ClientConnection | ServerConnection) -> AsyncIterator[str | bytes]:
        try:
            async for message in connection:
                self.any = True
                yield message
        except ConnectionClosed as error:
            if error.sent is not None and error.sent.code == CloseCode.MESSAGE_TOO_BIG:
                self._on_state(f"skipped a message of more than {LARGEST // 2**20} MiB, and ended its connection")
