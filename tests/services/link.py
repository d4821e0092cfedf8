"""The network between a program and a service: a loopback port that can be slow, stall, go deaf, break and refuse."""

from __future__ import annotations

import asyncio
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Self

from context_builder.engines.engine import LOOPBACK

CHUNK = 65536


class Link:
    """Passes bytes on to the service at port ``target``, for as long as nothing goes wrong.

    Its own ``port`` stays the same when it refuses connections for a while. With ``tls``, programs speak TLS, and what
    is passed on is plain; with ``pace``, a connection rests so many seconds after 64 KiB.
    """

    def __init__(self, target: int, *, tls: ssl.SSLContext | None = None, pace: float = 0.0) -> None:
        self.port = 0
        self._target = target
        self._tls = tls
        self._pace = pace
        self._server: asyncio.Server | None = None
        self._writers: set[StreamWriter] = set()
        self._passing: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._deaf = False
        self._breaks_inside = False

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        await self.open()
        try:
            yield self
        finally:
            await self.close()

    async def open(self) -> None:
        """Accept connections."""
        self._server = await asyncio.start_server(self._connect, LOOPBACK, self.port, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Break all connections and refuse new ones."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()
        for task in self._passing:
            task.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)

    def lead_to(self, target: int) -> None:
        """New connections lead to another port; the present ones break."""
        self._target = target
        self.cut()

    def cut(self) -> None:
        """Break all connections at once."""
        for writer in self._writers:
            writer.transport.abort()

    def cut_inside(self) -> None:
        """Break a connection in the middle of the next request."""
        self._breaks_inside = True

    def strand(self) -> None:
        """Connections die without a word, as behind a router that forgot them; new ones flow."""
        self._flowing.clear()
        self._flowing = asyncio.Event()
        self._flowing.set()

    @asynccontextmanager
    async def stalled(self) -> AsyncIterator[None]:
        """Nothing passes in either direction; nothing is refused either."""
        self._flowing.clear()
        try:
            yield
        finally:
            self._flowing.set()

    @asynccontextmanager
    async def deaf(self) -> AsyncIterator[None]:
        """Requests arrive and are carried out, but their answers are lost; in the end connections break."""
        self._deaf = True
        try:
            yield
        finally:
            self.cut()
            self._deaf = False

    @asynccontextmanager
    async def refusing(self) -> AsyncIterator[None]:
        """Connections break, and new ones are refused."""
        await self.close()
        try:
            yield
        finally:
            await self.open()

    async def _connect(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._writers.add(writer)
        try:
            flowing = self._flowing
            await flowing.wait()
            service_reader, service_writer = await asyncio.open_connection(LOOPBACK, self._target)
        except OSError:
            writer.transport.abort()
            self._writers.discard(writer)
            return
        self._writers.add(service_writer)
        for source, sink, inward in ((reader, service_writer, True), (service_reader, writer, False)):
            task = asyncio.create_task(self._pass_all(source, sink, flowing, inward=inward), name="link")
            self._passing.add(task)
            task.add_done_callback(self._passing.discard)

    async def _pass_all(
        self, source: StreamReader, sink: StreamWriter, flowing: asyncio.Event, *, inward: bool
    ) -> None:
        try:
            with suppress(OSError):
                while data := await source.read(CHUNK):
                    await flowing.wait()
                    await self.forward(data, sink, inward=inward)
                    if self._pace:
                        await asyncio.sleep(self._pace * len(data) / CHUNK)
        finally:
            self._writers.discard(sink)
            sink.transport.abort()

    async def forward(self, data: bytes, sink: StreamWriter, *, inward: bool) -> None:
        """Pass on what was read: a piece of requests when ``inward``, else of answers."""
        if self._deaf and not inward:
            return
        if self._breaks_inside and inward:
            self._breaks_inside = False
            sink.write(data[: len(data) // 2])
            await sink.drain()
            self.cut()
            return
        sink.write(data)
        await sink.drain()
