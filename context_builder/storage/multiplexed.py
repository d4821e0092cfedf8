"""A Redis client whose commands, of however many callers, share a few connections.

Each connection is a lane: it takes every command that waits, sends them in one write and reads their answers in one go.
A busy process thus sends large pipelines, and an idle one has a few connections, however many sessions it runs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, NamedTuple

import hiredis
from redis.asyncio import Redis
from redis.asyncio.connection import Connection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

LANES: Final = 2
"""So one large command does not hold up the others, and answers are waited for while the next commands are sent."""

MOST_BYTES: Final = 2**20
"""A lane sends about so much at once; what is larger goes alone."""

SILENT_SECONDS: Final = 5.0
"""A connection that has not answered all that it was sent at once for so long is replaced."""


class _Waiting(NamedTuple):
    packed: bytes
    name: str
    options: Mapping[str, Any]
    answer: asyncio.Future[Any]


class MultiplexedRedis(Redis):
    """Sends commands over :data:`LANES` connections of ``client``'s pool.

    Pipelines, subscriptions and anything that blocks take a connection of their own, as with any client: no blocking
    command may be sent with :meth:`execute_command`. A command that was cancelled may still be carried out.
    """

    def __init__(self, client: Redis, lanes: int = LANES) -> None:
        super().__init__(connection_pool=client.connection_pool)
        self._waiting: deque[_Waiting] = deque()
        self._idle = lanes
        self._lanes: set[asyncio.Task[None]] = set()
        self._connections: list[Connection] = []

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Return the answer of a command; raises what redis-py raises."""
        packed = hiredis.pack_command(args if " " not in args[0] else (*args[0].split(), *args[1:]))
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(packed, args[0], options, answer))
        if self._idle:
            self._idle -= 1
            lane = asyncio.create_task(self._drain(), name="redis lane")
            self._lanes.add(lane)
            lane.add_done_callback(self._lanes.discard)
        return await answer

    async def aclose(self, close_connection_pool: bool | None = None) -> None:  # noqa: FBT001 redis-py's signature
        """Give the connections back to the pool, which its client closes."""
        del close_connection_pool
        for lane in [*self._lanes]:
            lane.cancel()
        await asyncio.gather(*self._lanes, return_exceptions=True)
        while self._connections:
            await self._return(self._connections.pop())

    async def _return(self, connection: Connection) -> None:
        await self.connection_pool.release(connection)

    async def _drain(self) -> None:
        """Send what waits until nothing does; then the lane is free."""
        try:
            while batch := self._take():
                await self._send(batch)
        finally:
            self._idle += 1

    def _take(self) -> list[_Waiting]:
        taken: list[_Waiting] = []
        size = 0
        while self._waiting and (not taken or size + len(self._waiting[0].packed) <= MOST_BYTES):
            command = self._waiting.popleft()
            if command.answer.done():  # nobody waits for it any more
                continue
            taken.append(command)
            size += len(command.packed)
        return taken

    async def _send(self, batch: list[_Waiting]) -> None:
        unanswered = deque(batch)
        try:
            connection = await self._connected()
            healthy = False
            try:
                await connection.send_packed_command(b"".join(command.packed for command in batch), check_health=False)
                async with _answered_in_time():
                    while unanswered:
                        answer = await self._answer(connection, unanswered[0])
                        _settle(unanswered.popleft(), answer)
                healthy = True
            finally:
                if healthy:
                    self._connections.append(connection)
                else:
                    with suppress(RedisError, OSError):
                        await connection.disconnect(nowait=True)
                    await self._return(connection)
        except (RedisError, OSError, TimeoutError) as error:
            for command in unanswered:
                _settle(command, error)
        except BaseException:
            for command in unanswered:
                command.answer.cancel()
            raise

    async def _connected(self) -> Connection:
        """Return a connection that was not closed while it was idle."""
        while self._connections:
            connection = self._connections.pop()
            with suppress(RedisError, OSError):
                if not await connection.can_read():
                    return connection
            await connection.disconnect(nowait=True)
            await self._return(connection)
        await self.initialize()
        made: Connection = await self.connection_pool.get_connection()  # type: ignore[no-untyped-call]
        return made

    async def _answer(self, connection: Connection, command: _Waiting) -> Any:
        """Return the answer, or the error that Redis answered. Raises when the connection is of no use any more."""
        try:
            return await self.parse_response(connection, command.name, **command.options)
        except RedisError as error:
            if not connection.is_connected:
                raise
            return error


@asynccontextmanager
async def _answered_in_time() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(SILENT_SECONDS):
            yield
    except TimeoutError:
        raise RedisConnectionError("no answer") from None


def _settle(command: _Waiting, answer: Any) -> None:
    if command.answer.done():
        return
    if isinstance(answer, BaseException):
        command.answer.set_exception(answer)
    else:
        command.answer.set_result(answer)
