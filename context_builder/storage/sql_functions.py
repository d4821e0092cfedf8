"""The SQL functions of ``storage/sql``, called for a tenant in PostgreSQL, or over RPC in a Supabase project."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import date
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson

from context_builder.storage.database_errors import DatabaseErrors
from context_builder.storage.postgres import TIMEOUT, MovingDatabase, PostgresPool
from context_builder.storage.supabase import SupabaseProject

if TYPE_CHECKING:
    import asyncpg

ROLE: Final = "context_builder_app"

CONNECTIONS: Final = 4
"""Connections of a pool where nothing else is set."""

_PAGED: Final = {"context_knowledge_sources": "ref"}
"""Functions that only read and may return more rows than Supabase's API does at once, and what these are ordered by."""

_PAGE: Final = 1_000
"""Rows of a page."""

_ROWS: Final = "SELECT coalesce(json_agg(r), '[]') FROM"
IDLE_TIMEOUT: Final = 2.0
"""Seconds after which the database ends a transaction whose program does not go on, frozen or cut off as it may be: the
writers of a tenant wait for each other."""

# All for this transaction only: a pooled connection takes no tenant along. Without the role (a database
# whose owner may not make roles) the connection's own stays. The tenant is written in hexadecimal, which needs
# no quoting, because a statement without parameters takes one round trip and not two.
_AS_TENANT: Final = f"""
SELECT set_config('context_builder.tenant', convert_from(decode('%s', 'hex'), 'UTF8'), true),
       set_config('idle_in_transaction_session_timeout', '{IDLE_TIMEOUT * 1000:.0f}', true),
       (SELECT set_config('role', rolname, true) FROM pg_roles WHERE rolname = '{ROLE}')
"""  # noqa: S608 (only a constant)


# Where a session is the connection's own, the role is the session's, and a call is one statement in one round trip.
_AS_ROLE: Final = f"SELECT set_config('role', rolname, false) FROM pg_roles WHERE rolname = '{ROLE}'"  # noqa: S608
_OF_TENANT: Final = "(SELECT set_config('context_builder.tenant', $1, true) AS tenant OFFSET 0) AS t"
"""Comes first, because the function is given what it returns."""


class SqlFunctions(Protocol):
    """Calls the SQL functions in some way. Raises the errors of the kind of store that it was made for."""

    @property
    def name(self) -> str: ...

    async def call(self, function: str, tenant_id: str, arguments: Mapping[str, Any]) -> list[Any]:
        """Return the function's rows as JSON values; one for a function that returns a value.

        Arguments are what JSON has, also as a fragment of orjson, and times and dates.
        """
        ...

    async def close(self) -> None: ...


class PostgresFunctions:
    """Calls the functions at ``url``, each in a transaction of its tenant. Works through a transaction pooler, in four
    round trips instead of one.
    """

    def __init__(
        self,
        url: str | MovingDatabase,
        errors: DatabaseErrors,
        *,
        timeout: float = TIMEOUT,
        connections: int = CONNECTIONS,
    ) -> None:
        self._pool = PostgresPool(
            url,
            errors,
            max_connections=connections,
            timeout=timeout,
            reset=_nothing_to_reset,
            set_up=_AS_ROLE,
        )

    @property
    def name(self) -> str:
        return self._pool.name

    async def call(self, function: str, tenant_id: str, arguments: Mapping[str, Any]) -> list[Any]:
        values = [tenant_id, *map(_encoded, arguments.values())]
        passed = "".join(f", {name} => ${place}" for place, name in enumerate(arguments, 2))
        async with self._pool.connected() as pool, pool.acquire() as connection:
            if self._pool.is_direct:
                called = f"{_OF_TENANT}, {function}(tenant => t.tenant{passed}) AS r"
                answer = await connection.fetchval(f"{_ROWS} {called}", *values)
            else:
                async with _transaction(connection, tenant_id):
                    answer = await connection.fetchval(f"{_ROWS} {function}(tenant => $1{passed}) AS r", *values)
        rows: list[Any] = orjson.loads(answer)
        return rows

    async def close(self) -> None:
        await self._pool.close()


class SupabaseFunctions:
    """Calls the functions in the project at ``url``; the service role that ``key`` gives names the tenant."""

    def __init__(self, url: str, key: str, errors: DatabaseErrors, *, timeout: float = TIMEOUT) -> None:
        self._project = SupabaseProject(url, key, errors, timeout=timeout)
        self._errors = errors

    @property
    def name(self) -> str:
        return self._project.name

    async def call(self, function: str, tenant_id: str, arguments: Mapping[str, Any]) -> list[Any]:
        client = await self._project.client()
        from postgrest.types import CountMethod

        passed = {"tenant": tenant_id, **{name: _plain(value) for name, value in arguments.items()}}
        rows: list[Any] = []
        with self._project.translated():
            while True:  # the API returns so many rows at most: 1,000, if nothing else is set
                request = client.rpc(function, passed, count=CountMethod.exact)
                if function in _PAGED:
                    request = request.order(_PAGED[function]).range(len(rows), len(rows) + _PAGE - 1)
                answer = await self._project.bounded(request.execute())
                if not isinstance(answer.data, list):
                    return [answer.data]
                rows += answer.data
                if len(rows) >= (answer.count or 0):
                    return rows
                if function not in _PAGED or not answer.data:
                    cut = f"returns {len(rows)} of {answer.count} rows; raise its limit of rows (Settings, API)"
                    raise self._errors.rejected(f"{self.name} {cut}")

    async def close(self) -> None:
        await self._project.close()


@asynccontextmanager
async def _transaction(connection: asyncpg.Connection, tenant_id: str) -> AsyncIterator[None]:
    """Open a transaction of the tenant, in one round trip."""
    try:
        await connection.execute(f"BEGIN; {_AS_TENANT % tenant_id.encode().hex()}")
        yield
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


async def _nothing_to_reset(_: asyncpg.Connection) -> None:
    """Everything that a call sets is its transaction's."""


def _plain(value: Any) -> Any:
    """The Supabase client takes what JSON has."""
    if isinstance(value, orjson.Fragment):
        return orjson.loads(orjson.dumps(value))
    return value.isoformat() if isinstance(value, date) else value


def _encoded(value: Any) -> Any:
    """asyncpg takes JSON as text, and arrays as lists."""
    is_json = isinstance(value, dict | orjson.Fragment) or (
        isinstance(value, list) and any(isinstance(item, dict) for item in value)
    )
    return orjson.dumps(value).decode() if is_json else value
