"""The archive in any PostgreSQL, the embedded one included."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from context_builder.archive.archive import COLUMNS, KEY, MIGRATIONS, SAME_BY, TABLE, SummaryRow, as_record
from context_builder.errors import ArchiveRejected
from context_builder.storage.postgres_errors import translated
from context_builder.storage.urls import printable

if TYPE_CHECKING:
    import asyncpg

TIMEOUT: Final = 5.0
"""Seconds to connect, and to run a statement, before the archive counts as unavailable."""

_MAX_CONNECTIONS: Final = 2

_COLUMNS: Final = ", ".join(COLUMNS)
# The row goes in as JSON, so that a table whose time or domain columns have other types takes it too.
_DELIVER: Final = f"""
INSERT INTO {TABLE} ({_COLUMNS})
SELECT {_COLUMNS} FROM jsonb_populate_record(NULL::{TABLE}, $1::jsonb)
ON CONFLICT ({", ".join(KEY)}) DO NOTHING
"""  # noqa: S608 (only constants)
_NOT_INSERTED: Final = "INSERT 0 0"
_SAME: Final = f"""
SELECT max(summary_seq) FROM {TABLE}
WHERE ({", ".join(SAME_BY)}) = (SELECT {", ".join(SAME_BY)} FROM jsonb_populate_record(NULL::{TABLE}, $1::jsonb))
"""  # noqa: S608
_NEXT: Final = f"SELECT coalesce(max(summary_seq), 0) + 1 FROM {TABLE} WHERE session_id = $1"  # noqa: S608
_FORGET: Final = f"DELETE FROM {TABLE} WHERE session_id = $1"  # noqa: S608
_READ_NOTHING: Final = f"SELECT {_COLUMNS} FROM {TABLE} LIMIT 0"  # noqa: S608
_MAY_SEE_MIGRATIONS: Final = f"SELECT coalesce(has_table_privilege(to_regclass('{MIGRATIONS}'), 'SELECT'), false)"
_APPLIED: Final = f"SELECT coalesce(array_agg(name), '{{}}') FROM {MIGRATIONS}"  # noqa: S608
_MAY_WRITE: Final = f"SELECT has_table_privilege('{TABLE}', 'INSERT')"


class PostgresArchive:
    """Keeps summaries at ``url``. See :class:`~context_builder.archive.archive.Archive`.

    Connects at first use, with two connections at most. Works through a transaction pooler:
    it keeps no prepared statements.
    """

    def __init__(self, url: str, *, timeout: float = TIMEOUT) -> None:
        self._url = url
        self._timeout = timeout
        self._pool: asyncpg.Pool | None = None
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        return f"PostgreSQL at {printable(self._url)}"

    async def deliver(self, row: SummaryRow) -> int:
        record = as_record(row)
        while await self._execute(_DELIVER, json.dumps(record)) == _NOT_INSERTED:
            # In this order, so that what somebody else delivers in between either is seen or takes the number.
            following = await self._value(_NEXT, row.session_id)
            same = await self._value(_SAME, json.dumps(record))
            if same is not None:
                return int(same)
            record["summary_seq"] = following
        return int(record["summary_seq"])

    async def forget(self, session_id: str) -> int:
        status = await self._execute(_FORGET, session_id)
        return int(status.removeprefix("DELETE "))

    async def check(self) -> None:
        async with self._connected() as pool:
            await pool.execute(_READ_NOTHING)
            may_write = await pool.fetchval(_MAY_WRITE)
        if not may_write:
            raise ArchiveRejected(f"{self.name} lets this role read {TABLE} but not write it; grant INSERT")

    async def applied(self) -> frozenset[str]:
        async with self._connected() as pool:
            may_see = await pool.fetchval(_MAY_SEE_MIGRATIONS)
            return frozenset(await pool.fetchval(_APPLIED) if may_see else ())

    async def close(self) -> None:
        if self._pool is not None:
            self._pool.terminate()  # no statement is worth waiting for: a delivery is repeated
            self._pool = None

    async def _execute(self, statement: str, argument: str) -> str:
        async with self._connected() as pool:
            return str(await pool.execute(statement, argument))

    async def _value(self, query: str, argument: str) -> Any:
        async with self._connected() as pool:
            return await pool.fetchval(query, argument)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[asyncpg.Pool]:
        """The pool, with errors translated and time bounded.

        The pool bounds a connect and a statement by itself, but not the wait for a free connection.
        """
        vendor = await asyncio.to_thread(importlib.import_module, "asyncpg")
        with translated(self.name):
            async with asyncio.timeout(2 * self._timeout):
                async with self._opening:
                    self._pool = self._pool or await vendor.create_pool(
                        self._url,
                        min_size=0,
                        max_size=_MAX_CONNECTIONS,
                        timeout=self._timeout,
                        command_timeout=self._timeout,
                        statement_cache_size=0,
                    )
                yield self._pool
