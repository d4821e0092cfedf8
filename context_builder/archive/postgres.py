"""The archive in any PostgreSQL, the embedded one included."""

from __future__ import annotations

import json
from typing import Any, Final

from context_builder.archive.archive import (
    ASKED,
    COLUMNS,
    KEY,
    MIGRATIONS,
    SAME_BY,
    TABLE,
    RevisedSummaryRow,
    SummaryRow,
    as_record,
)
from context_builder.database.postgres import PostgresDatabase
from context_builder.errors import DatabaseRejected

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
_EARLIER: Final = "session_id = $1 AND summary_seq < $3 AND summary_seq >= $2"
_STRIKE: Final = f"DELETE FROM {TABLE} WHERE {_EARLIER}"  # noqa: S608
_SUPERSEDE: Final = f"""
UPDATE {TABLE} SET superseded_by = $3
WHERE session_id = $1 AND summary_seq < $3 AND (summary_seq >= $2 OR superseded_by >= $2)
"""  # noqa: S608
_READ_NOTHING: Final = f"SELECT {_COLUMNS} FROM {TABLE} LIMIT 0"  # noqa: S608
_MAY_SEE_MIGRATIONS: Final = f"SELECT coalesce(has_table_privilege(to_regclass('{MIGRATIONS}'), 'SELECT'), false)"
_APPLIED: Final = f"SELECT coalesce(array_agg(name), '{{}}') FROM {MIGRATIONS}"  # noqa: S608
_MAY_WRITE: Final = f"SELECT has_table_privilege('{TABLE}', 'INSERT')"


class PostgresArchive:
    """Keeps summaries in a table. See :class:`~context_builder.archive.archive.Archive`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    @property
    def name(self) -> str:
        return self._database.name

    async def deliver(self, row: SummaryRow) -> int:
        record = as_record(row)
        while await self._execute(_DELIVER, json.dumps(record)) == _NOT_INSERTED:
            # In this order, so that what somebody else delivers in between either is seen or takes the number.
            following = await self._value(_NEXT, row.session_id)
            same = await self._value(_SAME, json.dumps(record))
            if same is not None:
                record["summary_seq"] = same
                break
            record["summary_seq"] = following
        seq = int(record["summary_seq"])
        if isinstance(row, RevisedSummaryRow):
            for statement in (_STRIKE, _SUPERSEDE) if row.strikes else (_SUPERSEDE,):
                await self._execute(statement, row.session_id, row.supersedes_from, seq)
        return seq

    async def forget(self, session_id: str) -> int:
        status = await self._execute(_FORGET, session_id)
        return int(status.removeprefix("DELETE "))

    async def check(self) -> None:
        async with self._database.as_self(ASKED) as connection:
            await connection.execute(_READ_NOTHING)
            may_write = await connection.fetchval(_MAY_WRITE)
        if not may_write:
            raise DatabaseRejected(f"{self.name} lets this role read {TABLE} but not write it; grant INSERT")

    async def applied(self) -> frozenset[str]:
        async with self._database.as_self(ASKED) as connection:
            may_see = await connection.fetchval(_MAY_SEE_MIGRATIONS)
            return frozenset(await connection.fetchval(_APPLIED) if may_see else ())

    async def close(self) -> None:
        await self._database.close()

    async def _execute(self, statement: str, *arguments: Any) -> str:
        async with self._database.as_self(ASKED) as connection:
            return str(await connection.execute(statement, *arguments))

    async def _value(self, query: str, argument: str) -> Any:
        async with self._database.as_self(ASKED) as connection:
            return await connection.fetchval(query, argument)
