"""A TCP proxy whose network can go dead: nothing is refused, nothing is answered."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from context_builder.engines.engine import LOOPBACK


class Proxy:
    """Forwards bytes to ``target`` while :attr:`flowing` is set, and hangs up on all after :meth:`hang_up`.

    What is open at a call of :meth:`lose` is never forwarded anything again.

    With ``pace``, each connection waits so many seconds after 64 KiB.
    """

    def __init__(self, target: int, pace: float = 0.0) -> None:
        self._target = target
        self._pace = pace
        self._away = False
        self._lost = asyncio.Event()
        self._forwarding: set[asyncio.Task[None]] = set()
        self.port = 0
        self.flowing = asyncio.Event()
        self.flowing.set()

    @asynccontextmanager
    async def serving(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[Proxy]:
        """Listens on :attr:`port`; with ``tls``, clients speak TLS, and what is forwarded is plain."""
        server = await asyncio.start_server(self._connect, LOOPBACK, 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in self._forwarding:
                task.cancel()
            await asyncio.gather(*self._forwarding, return_exceptions=True)

    def hang_up(self) -> None:
        """Close what is open, and whatever is opened until :meth:`take_up`."""
        self._away = True
        for task in self._forwarding:
            task.cancel()

    def lose(self) -> None:
        """Lose every connection that is open, without a word to either side."""
        self._lost.set()
        self._lost = asyncio.Event()

    def take_up(self) -> None:
        self._away = False

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._away:
            writer.close()
            return
        await self.flowing.wait()
        there_reader, there_writer = await asyncio.open_connection(LOOPBACK, self._target)
        for source, sink in ((reader, there_writer), (there_reader, writer)):
            task = asyncio.create_task(self._forward(source, sink, self._lost), name="proxy.forward")
            self._forwarding.add(task)

    async def _forward(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, lost: asyncio.Event) -> None:
        try:
            while data := await source.read(65536):
                await self.flowing.wait()
                if lost.is_set():
                    await asyncio.Event().wait()
                sink.write(data)
                await sink.drain()
                if self._pace:
                    await asyncio.sleep(self._pace * len(data) / 65536)
        finally:
            sink.close()
