"""A proxy before a Redis that knows few commands, as those that shard or pool connections do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from context_builder.engines.engine import LOOPBACK


class PoorProxy:
    """Forwards commands to ``target`` but those it does not know: it answers with an error, or ``hangs_up``."""

    def __init__(self, target: int, unknown: Collection[str], *, hangs_up: bool = False) -> None:
        self._target = target
        self._unknown = {name.encode() for name in unknown}
        self._hangs_up = hangs_up
        self._serving: set[asyncio.Task[None]] = set()
        self.refused: list[str] = []
        self.port = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[PoorProxy]:
        server = await asyncio.start_server(self._connect, LOOPBACK, 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*self._serving, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        there_reader, there = await asyncio.open_connection(LOOPBACK, self._target)
        back = asyncio.create_task(_copy(there_reader, writer))
        try:
            while count := await reader.readline():
                words = [await _word(reader) for _ in range(int(count[1:]))]
                name = words[0].upper()
                if name not in self._unknown:
                    there.write(count + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words))
                    await there.drain()
                    continue
                self.refused.append(name.decode())
                if self._hangs_up:
                    return
                writer.write(b"-ERR unknown command '%b', with args beginning with:\r\n" % name)
        finally:
            back.cancel()
            there.close()
            writer.close()
            self._serving.discard(task)


async def _word(reader: asyncio.StreamReader) -> bytes:
    size = int((await reader.readline())[1:])
    return (await reader.readexactly(size + 2))[:-2]


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()
