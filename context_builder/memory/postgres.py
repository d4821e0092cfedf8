"""The memory store in any PostgreSQL, the embedded one included."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from context_builder.memory.embedder import Embedder
from context_builder.memory.sql_errors import translated
from context_builder.memory.sql_memory import QUERY_TIME, SearchOptions, SqlMemory

if TYPE_CHECKING:
    import asyncpg

TIMEOUT: Final = 5.0
"""Seconds to connect, and to run a statement, before the memory counts as unavailable."""

ROLE: Final = "context_builder_app"

_MAX_CONNECTIONS: Final = 4
# Both for this transaction only: a pooled connection takes no tenant along. Without the role (a database
# whose owner may not make roles) the connection's own stays. The tenant is written in hexadecimal, which needs
# no quoting, because a statement without parameters takes one round trip and not two.
_AS_TENANT: Final = f"""
SELECT set_config('context_builder.tenant', convert_from(decode('%s', 'hex'), 'UTF8'), true),
       (SELECT set_config('role', rolname, true) FROM pg_roles WHERE rolname = '{ROLE}')
"""  # noqa: S608 (only a constant)


class PostgresFunctions:
    """Calls the functions at ``url``, each in a transaction of its tenant. Works through a transaction pooler."""

    def __init__(self, url: str, *, timeout: float = TIMEOUT) -> None:
        self._url = url
        self._timeout = timeout
        self._pool: asyncpg.Pool | None = None
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        return f"PostgreSQL at {urlsplit(self._url).netloc.rpartition('@')[2] or 'localhost'}"

    async def call(self, function: str, tenant_id: str, arguments: Mapping[str, Any]) -> list[Any]:
        named = {"tenant": tenant_id} | {name: _encoded(value) for name, value in arguments.items()}
        passed = ", ".join(f"{name} => ${place}" for place, name in enumerate(named, 1))
        statement = f"SELECT coalesce(json_agg(r), '[]') FROM {function}({passed}) AS r"  # noqa: S608 (our names)
        async with self._transaction() as connection:
            await connection.execute(_AS_TENANT % tenant_id.encode().hex())
            rows: list[Any] = json.loads(await connection.fetchval(statement, *named.values()))
            return rows

    async def close(self) -> None:
        if self._pool is not None:
            self._pool.terminate()
            self._pool = None

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[asyncpg.Connection]:
        with translated(self.name):
            async with asyncio.timeout(2 * self._timeout):
                pool = self._pool or await self._opened()
                async with pool.acquire() as connection, connection.transaction():
                    yield connection

    async def _opened(self) -> asyncpg.Pool:
        async with self._opening:
            vendor = await asyncio.to_thread(importlib.import_module, "asyncpg")
            self._pool = self._pool or await vendor.create_pool(
                self._url,
                min_size=0,
                max_size=_MAX_CONNECTIONS,
                timeout=self._timeout,
                command_timeout=self._timeout,
                statement_cache_size=0,
                reset=_nothing_to_reset,
            )
            return self._pool


class PostgresMemory(SqlMemory):
    """Keeps memories at ``url``, apart by tenant. See :class:`~context_builder.memory.memory.MemoryStore`."""

    def __init__(
        self,
        url: str,
        embedder: Embedder | None = None,
        options: SearchOptions | None = None,
        *,
        timeout: float = TIMEOUT,
        query_time: float = QUERY_TIME,
    ) -> None:
        super().__init__(PostgresFunctions(url, timeout=timeout), embedder, options, query_time=query_time)


async def _nothing_to_reset(_: asyncpg.Connection) -> None:
    """Everything that a call sets is its transaction's."""


def _encoded(value: Any) -> Any:
    """asyncpg takes JSON as text, and arrays as lists."""
    is_json = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value))
    return json.dumps(value) if is_json else value
