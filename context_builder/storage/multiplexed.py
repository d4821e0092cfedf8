"""A Redis client whose commands, of however many callers, share a few connections.

Each connection is a lane: it takes every command that waits, sends them in one write and reads their answers in one go.
A busy process thus sends large pipelines, and an idle one has a few connections, however many sessions it runs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import hiredis
from redis.asyncio import Redis
from redis.asyncio.connection import Connection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

LANES: Final = 2
"""Connections that commands share: with two, a large command does not hold up the others."""

MOST_BYTES: Final = 2**20
"""Most bytes that a lane sends at once; a larger command goes alone."""

SILENT_SECONDS: Final = 5.0
"""Seconds without a complete answer after which a connection is replaced."""

DOUBT_SECONDS: Final = 0.25
"""A connection that is silent for so long is doubted: when another one answers meanwhile, and :data:`GRACE_SECONDS`
later it is silent still, the network has lost it without a word, and it is replaced."""

GRACE_SECONDS: Final = 0.1

SLOWEST: Final = 1_000_000
"""Bytes a second that a slow network sends; larger commands get more time before their connection is doubted."""

LOOK_SECONDS: Final = 0.1
"""Time between two looks for answers that are late: one timer for all commands."""


_LINE_END: Final = b"\r\n"


class PackedStart(NamedTuple):
    """The first ``arguments`` of a command as they are sent, and how many they are; at least one more follows."""

    name: str
    arguments: int
    packed: bytes

    @classmethod
    def of(cls, name: str, *args: Any) -> Self:
        """Return the start that these arguments make."""
        _, _, packed = hiredis.pack_command((name, *args)).partition(_LINE_END)
        return cls(name, 1 + len(args), packed)


class _Waiting(NamedTuple):
    packed: Sequence[bytes | memoryview]
    size: int
    name: str
    options: Mapping[str, Any]
    answer: asyncio.Future[Any]


class _Limited(NamedTuple):
    until: float  # of the event loop
    answer: asyncio.Future[Any]


@dataclass(eq=False, slots=True)
class _Exchange:
    connection: Connection
    unanswered: deque[_Waiting]
    limit: asyncio.Timeout
    is_over: bool = False

    @property
    def is_being_answered(self) -> bool:
        """Return whether part of an answer has come."""
        reader = getattr(getattr(self.connection, "_parser", None), "_reader", None)
        return reader is not None and bool(reader.has_data())


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
        self._doubts: set[asyncio.Task[None]] = set()
        self._limited: list[_Limited] = []
        self._looking: asyncio.TimerHandle | None = None

    async def execute_command(self, *args: Any, patience: float | None = None, **options: Any) -> Any:
        """Return the answer of a command, whose first argument may be a :class:`PackedStart`.

        Raises what redis-py raises, and :class:`TimeoutError` about ``patience`` seconds later.
        """
        answer = self._send_packed(args[0], args[1:]) if isinstance(args[0], PackedStart) else self._send(args, options)
        if patience is not None:
            self._limited.append(_Limited(asyncio.get_running_loop().time() + patience, answer))
            if self._looking is None:
                self._look_later()
        return await answer

    def _send(self, args: tuple[Any, ...], options: Mapping[str, Any]) -> asyncio.Future[Any]:
        packed = hiredis.pack_command(args if " " not in args[0] else (*args[0].split(), *args[1:]))
        return self._put((packed,), len(packed), args[0], options)

    def _send_packed(self, start: PackedStart, args: tuple[Any, ...]) -> asyncio.Future[Any]:
        rest = hiredis.pack_command(args)
        begins = rest.index(_LINE_END) + len(_LINE_END)
        packed = (b"*%d\r\n" % (start.arguments + len(args)), start.packed, memoryview(rest)[begins:])
        return self._put(packed, len(start.packed) + len(rest), start.name, {})

    def _put(
        self, packed: Sequence[bytes | memoryview], size: int, name: str, options: Mapping[str, Any]
    ) -> asyncio.Future[Any]:
        """Send a command as soon as there is a lane; return its answer."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(packed, size, name, options, answer))
        if self._idle:
            self._idle -= 1
            lane = asyncio.create_task(self._drain(), name="redis lane")
            self._lanes.add(lane)
            lane.add_done_callback(self._lanes.discard)
        return answer

    def _look_later(self) -> None:
        self._looking = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look_for_late)

    def _look_for_late(self) -> None:
        """Raise :class:`TimeoutError` for callers whose answers are late, as long as any are waited for."""
        now = asyncio.get_running_loop().time()
        waiting = [limited for limited in self._limited if not limited.answer.done()]
        for limited in waiting:
            if limited.until <= now:
                limited.answer.set_exception(TimeoutError())
        self._limited = [limited for limited in waiting if limited.until > now]
        self._looking = None
        if self._limited:
            self._look_later()

    async def aclose(self, close_connection_pool: bool | None = None) -> None:  # noqa: FBT001 redis-py's signature
        """Give the connections back to the pool, which its client closes; commands under way are cancelled."""
        del close_connection_pool
        if self._looking:
            self._looking.cancel()
        under_way = [*self._lanes, *self._doubts]
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        self._looking = None
        self._limited.clear()
        while self._waiting:
            self._waiting.popleft().answer.cancel()
        while self._connections:
            await self._return(self._connections.pop())

    async def _return(self, connection: Connection) -> None:
        await self.connection_pool.release(connection)

    async def _drain(self) -> None:
        """Send what waits until nothing does; then the lane is free."""
        try:
            while batch := self._take():
                await self._exchange(batch)
        finally:
            self._idle += 1

    def _take(self) -> list[_Waiting]:
        taken: list[_Waiting] = []
        size = 0
        while self._waiting and (not taken or size + self._waiting[0].size <= MOST_BYTES):
            command = self._waiting.popleft()
            if command.answer.done():  # nobody waits for it any more
                continue
            taken.append(command)
            size += command.size
        return taken

    async def _exchange(self, batch: list[_Waiting]) -> None:
        unanswered = deque(batch)
        try:
            connection = await self._connected()
            healthy = False
            try:
                sent = b"".join(part for command in batch for part in command.packed)
                await connection.send_packed_command(sent, check_health=False)
                async with _answered_in_time() as limit:
                    exchange = _Exchange(connection, unanswered, limit)
                    patience = DOUBT_SECONDS + len(sent) / SLOWEST
                    doubt = asyncio.get_running_loop().call_later(patience, self._doubt, exchange)
                    try:
                        while unanswered:
                            answer = await self._answer(connection, unanswered[0])
                            _settle(unanswered.popleft(), answer)
                    finally:
                        exchange.is_over = True
                        doubt.cancel()
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

    def _doubt(self, exchange: _Exchange) -> None:
        task = asyncio.create_task(self._end_if_lost(exchange), name="redis doubt")
        self._doubts.add(task)
        task.add_done_callback(self._doubts.discard)

    async def _end_if_lost(self, exchange: _Exchange) -> None:
        """End the exchange if another connection answers and this one does not."""
        while not exchange.is_over:
            before, is_silent = len(exchange.unanswered), not exchange.is_being_answered
            answers = is_silent and await self._pings()
            await asyncio.sleep(GRACE_SECONDS)
            is_silent = len(exchange.unanswered) == before and not exchange.is_being_answered
            if answers and is_silent and not exchange.is_over:
                exchange.limit.reschedule(0.0)
                await self._drop_idle()
                return

    async def _pings(self) -> bool:
        """Return whether Redis answers on a connection that is made for it: those that are idle may be lost, too."""
        connection: Connection = self.connection_pool.make_connection()  # type: ignore[no-untyped-call]
        try:
            async with asyncio.timeout(SILENT_SECONDS):
                await connection.connect()  # type: ignore[no-untyped-call]
                await connection.send_command("PING", check_health=False)
                await connection.read_response()
        except (RedisError, OSError, TimeoutError):
            return False
        finally:
            await connection.disconnect(nowait=True)
        return True

    async def _drop_idle(self) -> None:
        """Close what is idle: where the network has lost one connection, it has probably lost others."""
        while self._connections:
            connection = self._connections.pop()
            await connection.disconnect(nowait=True)
            await self._return(connection)
        await self.connection_pool.disconnect(inuse_connections=False)

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
async def _answered_in_time() -> AsyncIterator[asyncio.Timeout]:
    try:
        async with asyncio.timeout(SILENT_SECONDS) as limit:
            yield limit
    except TimeoutError:
        raise RedisConnectionError("no answer") from None


def _settle(command: _Waiting, answer: Any) -> None:
    if command.answer.done():
        return
    if isinstance(answer, BaseException):
        command.answer.set_exception(answer)
    else:
        command.answer.set_result(answer)
