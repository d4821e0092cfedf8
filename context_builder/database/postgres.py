"""The database in PostgreSQL, through asyncpg: one pool of connections, opened when it is first used."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from context_builder.concurrency import beside_loop
from context_builder.database.database import EVERYTHING, PING, TIMEOUT
from context_builder.database.refusals import explained
from context_builder.errors import DatabaseRejected, DatabaseUnavailable, DataRejected, EngineError, require_extra
from context_builder.storage.urls import printable

if TYPE_CHECKING:
    import asyncpg

CONNECTIONS: Final = 4
"""Connections of a pool where nothing else is set."""

ROLE: Final = "context_builder_app"

QUICK: Final = 100_000
"""Characters of JSON that are read in a millisecond."""

IDLE_TIMEOUT: Final = 2.0
"""Seconds after which the database ends a transaction whose program does not go on, frozen or cut off as it may be: the
writers of a tenant wait for each other."""

_PREPARED: Final = 100
"""Statements that a connection keeps prepared."""

_ROWS: Final = "SELECT coalesce(json_agg(r), '[]') FROM"

# All for this transaction only: a pooled connection takes no tenant along. Without the role (a database
# whose owner may not make roles) the connection's own stays. The tenant is written in hexadecimal, which needs
# no quoting, because a statement without parameters takes one round trip and not two.
_AS_TENANT: Final = f"""
SELECT set_config('context_builder.tenant', convert_from(decode('%s', 'hex'), 'UTF8'), true),
       set_config('idle_in_transaction_session_timeout', '{IDLE_TIMEOUT * 1000:.0f}', true),
       (SELECT set_config('role', rolname, true) FROM pg_roles WHERE rolname = '{ROLE}')
"""  # noqa: S608 (only a constant)

# Where a session is the connection's own, the role is the session's, and a call is one statement in one round trip. Who
# may not take the role may have the archive's table all the same.
_AS_ROLE: Final = f"""
SELECT set_config('role', rolname, false) FROM pg_roles WHERE rolname = '{ROLE}' AND pg_has_role(oid, 'MEMBER')
"""  # noqa: S608
_OF_TENANT: Final = "(SELECT set_config('context_builder.tenant', $1, true) AS tenant OFFSET 0) AS t"
"""Comes first, because the function is given what it returns."""

_AS_SELF: Final = "SET LOCAL role TO DEFAULT"
"""For tables that may be somebody else's: the role that the URL names uses them."""


@dataclass(frozen=True, slots=True)
class StartedServer:
    """A database server that the project starts itself, and how to reach it.

    ``start`` returns its address, once it runs and has its tables. ``restarted`` returns the present one, after it has
    started the server again if it was killed; None where somebody stopped it.
    """

    name: str
    start: Callable[[], Awaitable[str]]
    restarted: Callable[[], Awaitable[str | None]]


class PostgresDatabase:
    """Implements :class:`~context_builder.database.database.Database` in PostgreSQL, and lends connections.

    ``connections`` are the most that it opens. Connects at first use. Works through a transaction pooler, in four round
    trips instead of one. Raises :class:`~context_builder.errors.MissingExtra` when its driver is not installed.
    """

    def __init__(
        self,
        where: str | StartedServer | PostgresPool,
        *,
        connections: int = CONNECTIONS,
        timeout: float = TIMEOUT,
    ) -> None:
        self._is_part = isinstance(where, PostgresPool)
        self._pool = where if isinstance(where, PostgresPool) else PostgresPool(where, connections, timeout)
        self._places = asyncio.Semaphore(connections)

    @property
    def name(self) -> str:
        return self._pool.name

    def part(self, connections: int) -> PostgresDatabase:
        """Return the database for one who uses so many of its connections at most."""
        return PostgresDatabase(self._pool, connections=connections)

    async def call(self, function: str, tenant_id: str, arguments: Mapping[str, Any]) -> list[Any]:
        values = [tenant_id, *map(_encoded, arguments.values())]
        passed = "".join(f", {name} => ${place}" for place, name in enumerate(arguments, 2))
        async with self._connection(f"function {function}") as connection:
            if self._pool.is_direct:
                called = f"{_OF_TENANT}, {function}(tenant => t.tenant{passed}) AS r"
                answer = await connection.fetchval(f"{_ROWS} {called}", *values)
            else:
                async with _transaction(connection, _AS_TENANT % tenant_id.encode().hex()):
                    answer = await connection.fetchval(f"{_ROWS} {function}(tenant => $1{passed}) AS r", *values)
        rows: list[Any] = orjson.loads(answer) if len(answer) <= QUICK else await beside_loop(orjson.loads, answer)
        return rows

    async def ping(self) -> None:
        await self.call(PING, "context_builder", {})

    @asynccontextmanager
    async def as_self(self, asked: str) -> AsyncIterator[asyncpg.Connection]:
        """Lend a connection for ``asked``, such as a table, in a transaction as the role that the URL names."""
        async with self._connection(asked) as connection, _transaction(connection, _AS_SELF):
            yield connection

    async def close(self) -> None:
        if not self._is_part:
            await self._pool.close()

    @asynccontextmanager
    async def _connection(self, asked: str) -> AsyncIterator[asyncpg.Connection]:
        """Lend a connection, with errors translated and time bounded.

        The pool bounds a connect and a statement by itself, but not the wait for a free connection.
        """
        if "asyncpg" not in sys.modules:
            await asyncio.to_thread(importlib.import_module, "asyncpg")
        address = await self._pool.address()
        with translated(self.name, asked):
            async with asyncio.timeout(2 * self._pool.timeout), self._places:
                pool = self._pool.now or await self._pool.opened(address)
                async with pool.acquire() as connection:
                    yield connection


class PostgresPool:
    """The pool's connections to one database are shared by all of its parts.

    A server that the project starts is started at first use; its address is asked for again where it cannot be reached.
    Prepared statements are kept only where no transaction pooler stands before the database.
    """

    def __init__(self, where: str | StartedServer, connections: int, timeout: float) -> None:
        require_driver()
        self.timeout = timeout
        self.is_direct = False
        """Whether a session is its connection's own, known once the pool is open."""
        self._where = where
        self._url = where if isinstance(where, str) else ""
        self._connections = connections
        self.now: asyncpg.Pool | None = None
        """The open pool."""
        self._starting = asyncio.Lock()
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        return f"PostgreSQL at {printable(self._where)}" if isinstance(self._where, str) else self._where.name

    async def address(self) -> str:
        """Return the database's URL; its server is started first, if that is ours to do."""
        if self._url or isinstance(self._where, str):
            return self._url
        async with self._starting:
            if not self._url:
                try:
                    self._url = await self._where.start()
                except EngineError as error:
                    raise DatabaseUnavailable(str(error)) from None
            return self._url

    async def opened(self, url: str) -> asyncpg.Pool:
        """Return the pool, which connects to ``url``."""
        async with self._opening:
            if self.now is None:
                import asyncpg

                self.is_direct = await self._answers_directly()
                self.now = await asyncpg.create_pool(
                    url,
                    connect=self._connect,
                    min_size=0,
                    max_size=self._connections,
                    timeout=self.timeout,
                    command_timeout=self.timeout,
                    statement_cache_size=_PREPARED if self.is_direct else 0,
                    reset=_nothing_to_reset,
                    init=self._begin_session if self.is_direct else None,
                )
            return self.now

    async def close(self) -> None:
        if self.now is not None:
            self.now.terminate()  # no statement is worth waiting for: whoever sent it sends it again
            self.now = None

    async def _answers_directly(self) -> bool:
        connection = await self._connect(timeout=self.timeout, command_timeout=self.timeout)
        try:
            return await _is_direct(connection)
        finally:
            connection.terminate()

    async def _connect(self, *_: object, **options: Any) -> asyncpg.Connection:
        """Connect to where the database is now."""
        import asyncpg

        try:
            return await asyncpg.connect(self._url, **options)
        except OSError:
            if isinstance(self._where, str) or (url := await self._where.restarted()) is None:
                raise
            self._url = url
            return await asyncpg.connect(url, **options)

    async def _begin_session(self, connection: asyncpg.Connection) -> None:
        if not await _is_direct(connection):
            await self.close()  # opened anew by the next call, which finds out what is there now
            raise ConnectionResetError("a pooler stands before the database now")
        await connection.execute(_AS_ROLE)


async def _is_direct(connection: asyncpg.Connection) -> bool:
    """Return whether the server process that answers is the one that the connection was told of: poolers, which may
    give each transaction another one, report none of them, or a cancelled query would be somebody else's.

    A statement without parameters needs no preparing; its status tells how many rows it has.
    """
    status: str = await connection.execute(f"SELECT WHERE pg_backend_pid() = {connection.get_server_pid()}")
    return status == "SELECT 1"


async def _nothing_to_reset(_: asyncpg.Connection) -> None:
    """Everything that is set for a call or a statement is its transaction's."""


@asynccontextmanager
async def _transaction(connection: asyncpg.Connection, setting: str) -> AsyncIterator[None]:
    """Open a transaction for which ``setting`` holds, in one round trip."""
    try:
        await connection.execute(f"BEGIN; {setting}")
        yield
    except TimeoutError:  # nothing answers, so a rollback would not be answered either
        connection.terminate()
        raise
    except BaseException:  # being cancelled, too: the connection goes back to the pool
        await _rolled_back(connection)
        raise
    await connection.execute("COMMIT")


async def _rolled_back(connection: asyncpg.Connection) -> None:
    """Roll back, or give the connection up, so that nobody else's statement becomes part of the transaction."""
    try:
        await connection.execute("ROLLBACK")
    except Exception:  # noqa: BLE001 whatever the driver says: what failed before is what the caller is told
        connection.terminate()


def _encoded(value: Any) -> Any:
    """asyncpg takes JSON as text, and arrays as lists."""
    is_json = isinstance(value, dict | orjson.Fragment) or (
        isinstance(value, list) and any(isinstance(item, dict) for item in value)
    )
    return orjson.dumps(value).decode() if is_json else value


@asynccontextmanager
async def connected(
    url: str, *, command_timeout: float | None = TIMEOUT, migrating: bool = False
) -> AsyncIterator[asyncpg.Connection]:
    """Open one connection as the role that the URL names, for what the tables' owner does, with errors translated."""
    require_driver()
    import asyncpg

    with translated(f"PostgreSQL at {printable(url)}", migrating=migrating):
        connection = await asyncpg.connect(
            url, timeout=TIMEOUT, command_timeout=command_timeout, statement_cache_size=0
        )
        try:
            yield connection
        finally:
            connection.terminate()


def require_driver() -> None:
    """Raise :class:`~context_builder.errors.MissingExtra` when PostgreSQL's driver is not installed."""
    require_extra("postgres", "asyncpg", "PostgreSQL (DATABASE_URL)")


_REFUSED_BY_MIGRATION: Final = "55000"


@contextmanager
def translated(database: str, asked: str = EVERYTHING, *, migrating: bool = False) -> Iterator[None]:
    """Raise asyncpg's errors as ours; what our own migrations say is passed on, because it is ours."""
    import asyncpg

    try:
        yield
    except asyncpg.PostgresError as error:
        if migrating and error.sqlstate == _REFUSED_BY_MIGRATION:
            raise DatabaseRejected(f"{database} refuses: {error.args[0]}") from None
        raise explained(database, asked, error.sqlstate or "XX000") from None
    except asyncpg.exceptions.ClientConfigurationError:
        raise DatabaseRejected(f"{database} cannot be used: its URL is not one of PostgreSQL") from None
    except TimeoutError:
        raise DatabaseUnavailable(f"{database} does not answer in time") from None
    except (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:  # the last when one is cut off
        if isinstance(error, ValueError):  # the client cannot encode a value
            raise DataRejected(f"{database} cannot be sent this: {type(error).__name__}") from None
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        if isinstance(error, ConnectionError) and error.errno:  # of which asyncio says no more than that it failed
            reason = os.strerror(error.errno)
        raise DatabaseUnavailable(f"{database} cannot be reached ({reason}); start it, or correct its URL") from None
