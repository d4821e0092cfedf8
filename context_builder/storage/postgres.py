"""A pool of connections to PostgreSQL, opened when it is first used, and what PostgreSQL's errors mean.

Codes and classes (their first two characters): https://www.postgresql.org/docs/current/errcodes-appendix.html
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from context_builder.errors import ContextBuilderError, require_extra
from context_builder.storage.database_errors import DatabaseErrors
from context_builder.storage.urls import printable

if TYPE_CHECKING:
    import asyncpg

TIMEOUT: Final = 5.0
"""Seconds to connect, and to run a statement, before a store counts as unavailable."""

SQLSTATE_LENGTH: Final = 5
"""By which a code is told from an HTTP status."""

_TRANSIENT: Final = (
    "08",  # connection
    "25006",  # read-only after a failover
    "40",  # rolled back: deadlock, serialization
    "53",  # out of memory, disk or connections
    "55P03",  # lock not available
    "57",  # operator intervention: shutdown, starting up, cancelled
    "58",  # system error
    "XX",  # internal error
)
"""The same statement may succeed later."""

_INVALID_DATA: Final = (
    "22",  # data exception: out of range, unreadable, too long
    "23",  # a constraint of the table
    "44",  # the check option of a view
    "54",  # beyond a limit of the program, such as the size of an index entry
)
"""The statement fails for what is in it, however often it is sent; one with other data may succeed."""


_PREPARED: Final = 100
"""Statements that a connection keeps prepared."""


@dataclass(frozen=True, slots=True)
class MovingDatabase:
    """Names the address of a database that may have another one later.

    ``restarted`` returns the present one, after it has started the server again if it was killed; None where somebody
    stopped it.
    """

    url: str = field(repr=False)
    restarted: Callable[[], Awaitable[str | None]]


class PostgresPool:
    """Lends connections to the database at ``url``, at most so many. The address of one that moves is asked for again
    where it cannot be reached.

    Connects at first use. Works through a transaction pooler: prepared statements are kept only where ``set_up`` is
    given and there is none, and ``is_direct`` says so. ``set_up`` is then what a new connection runs for its session.
    Raises :class:`~context_builder.errors.MissingExtra` when its driver is not installed.
    """

    def __init__(
        self,
        url: str | MovingDatabase,
        errors: DatabaseErrors,
        *,
        max_connections: int,
        timeout: float = TIMEOUT,
        reset: Callable[[asyncpg.Connection], Awaitable[None]] | None = None,
        set_up: str | None = None,
    ) -> None:
        require_driver()
        self._url = url.url if isinstance(url, MovingDatabase) else url
        self._restarted = url.restarted if isinstance(url, MovingDatabase) else None
        self._errors = errors
        self._max_connections = max_connections
        self._timeout = timeout
        self._reset = reset
        self._set_up = set_up
        self._pool: asyncpg.Pool | None = None
        self._opening = asyncio.Lock()
        self.is_direct = False
        """Whether a session is its connection's own, known once the pool is open."""

    @property
    def name(self) -> str:
        return f"PostgreSQL at {printable(self._url)}"

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[asyncpg.Pool]:
        """Open the pool, with errors translated and time bounded.

        The pool bounds a connect and a statement by itself, but not the wait for a free connection.
        """
        if "asyncpg" not in sys.modules:
            await asyncio.to_thread(importlib.import_module, "asyncpg")
        with translated(self.name, self._errors):
            async with asyncio.timeout(2 * self._timeout):
                yield self._pool or await self._opened()

    async def close(self) -> None:
        if self._pool is not None:
            self._pool.terminate()  # no statement is worth waiting for: whoever sent it sends it again
            self._pool = None

    async def _opened(self) -> asyncpg.Pool:
        async with self._opening:
            import asyncpg

            if self._pool is None:
                self.is_direct = self._set_up is not None and await self._answers_directly()
                self._pool = await asyncpg.create_pool(
                    self._url,
                    connect=self._connect,
                    min_size=0,
                    max_size=self._max_connections,
                    timeout=self._timeout,
                    command_timeout=self._timeout,
                    statement_cache_size=_PREPARED if self.is_direct else 0,
                    reset=self._reset,
                    init=self._begin_session if self.is_direct else None,
                )
            return self._pool

    async def _answers_directly(self) -> bool:
        connection = await self._connect(timeout=self._timeout, command_timeout=self._timeout)
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
            if self._restarted is None or (url := await self._restarted()) is None:
                raise
            self._url = url
            return await asyncpg.connect(url, **options)

    async def _begin_session(self, connection: asyncpg.Connection) -> None:
        if not await _is_direct(connection):
            await self.close()  # opened anew by the next call, which finds out what is there now
            raise ConnectionResetError("a pooler stands before the database now")
        await connection.execute(self._set_up)


async def _is_direct(connection: asyncpg.Connection) -> bool:
    """Return whether the server process that answers is the one that the connection was told of: poolers, which may
    give each transaction another one, report none of them, or a cancelled query would be somebody else's.

    A statement without parameters needs no preparing; its status tells how many rows it has.
    """
    status: str = await connection.execute(f"SELECT WHERE pg_backend_pid() = {connection.get_server_pid()}")
    return status == "SELECT 1"


async def reach(url: str, errors: DatabaseErrors) -> None:
    """Connect once, and raise the store's error when that fails."""
    require_driver()
    import asyncpg

    with translated(f"PostgreSQL at {printable(url)}", errors):
        connection = await asyncpg.connect(url, timeout=TIMEOUT, command_timeout=TIMEOUT, statement_cache_size=0)
        connection.terminate()


def require_driver() -> None:
    """Raise :class:`~context_builder.errors.MissingExtra` when PostgreSQL's driver is not installed."""
    require_extra("postgres", "asyncpg", "PostgreSQL (DATABASE_URL)")


_REFUSED_BY_MIGRATION: Final = "55000"


def explained(store: str, errors: DatabaseErrors, sqlstate: str) -> ContextBuilderError:
    """Return the error for an SQLSTATE. PostgreSQL's message is left out: it may quote the row, as a trigger's does."""
    if sqlstate.startswith(_TRANSIENT):
        return errors.unavailable(f"{store} cannot answer now (SQLSTATE {sqlstate})")
    for prefix, advice in errors.advice.items():
        if sqlstate.startswith(prefix):
            return errors.rejected(f"{store} {advice}")
    refusal = errors.data_rejected if sqlstate.startswith(_INVALID_DATA) else errors.rejected
    return refusal(f"{store} refuses it (SQLSTATE {sqlstate}); its own log says why")


@contextmanager
def translated(store: str, errors: DatabaseErrors, *, migrating: bool = False) -> Iterator[None]:
    """Raise asyncpg's errors as the store's; what our own migrations say is passed on, because it is ours."""
    import asyncpg

    try:
        yield
    except asyncpg.PostgresError as error:
        if migrating and error.sqlstate == _REFUSED_BY_MIGRATION:
            raise errors.rejected(f"{store} refuses: {error.args[0]}") from None
        raise explained(store, errors, error.sqlstate or "XX000") from None
    except asyncpg.exceptions.ClientConfigurationError:
        raise errors.rejected(f"{store} cannot be used: its URL is not one of PostgreSQL") from None
    except TimeoutError:
        raise errors.unavailable(f"{store} does not answer in time") from None
    except (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:  # the last when one is cut off
        if isinstance(error, ValueError):  # the client cannot encode a value
            raise errors.data_rejected(f"{store} cannot be sent this: {type(error).__name__}") from None
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise errors.unavailable(f"{store} cannot be reached: {reason}") from None
