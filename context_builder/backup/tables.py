"""The database's tables are read at one moment by COPY, and written back in one transaction."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import orjson

from context_builder.database import postgres
from context_builder.database.migrations import migrations
from context_builder.errors import BackupError

if TYPE_CHECKING:
    import asyncpg

MIGRATIONS_TABLE: Final = "context_builder_migrations"
MEMORIES_TABLE: Final = "context_memories"
"""Its triggers keep counts and edges of what is in it; these have tables of their own, which are backed up, too."""

_OWN: Final = frozenset({"context_access_calls", "context_access_secrets", "context_package_retention"})

DAYS_MOST: Final = 5_000
_CREATED: Final = re.compile(r"^CREATE TABLE IF NOT EXISTS (\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Table:
    """Describes one of our tables; ``daily`` ones are partitioned by day."""

    name: str
    daily: bool
    columns: tuple[str, ...]
    identities: tuple[str, ...]


def names() -> list[str]:
    """Return the names of all tables that the migrations make, but for what is each database's own."""
    return sorted({name for sql in migrations().values() for name in _CREATED.findall(sql)} - _OWN)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Connect, with errors translated. Row-level security is an error where it would hide rows."""
    async with postgres.connected(url, command_timeout=None, migrating=True) as connection:
        await connection.execute("SET row_security = off; SET statement_timeout = 0")
        yield connection


async def tables(connection: asyncpg.Connection) -> list[Table]:
    """Return those of our tables that the database has."""
    rows = await connection.fetch(_sql("tables"), names())
    return [Table(row["name"], row["daily"], tuple(row["columns"]), tuple(row["identities"])) for row in rows]


async def read_table(
    connection: asyncpg.Connection, table: Table, write: Callable[[bytes], Awaitable[None]]
) -> dict[str, Any]:
    """Write all rows as COPY has them, and return what a manifest says of the table."""
    columns = ", ".join(map(_quoted, table.columns))
    status = await connection.copy_from_query(f"SELECT {columns} FROM {_quoted(table.name)}", output=write)  # noqa: S608
    days = await connection.fetch(f"SELECT DISTINCT day FROM {_quoted(table.name)}") if table.daily else []  # noqa: S608
    counters = {}
    for column in table.identities:
        sequence = await connection.fetchval("SELECT pg_get_serial_sequence($1, $2)", table.name, column)
        counters[column] = await connection.fetchval(f"SELECT last_value FROM {sequence}")  # noqa: S608
    return {
        "columns": table.columns,
        "rows": int(status.removeprefix("COPY ")),
        "days": sorted(row["day"].isoformat() for row in days),
        "identities": counters,
    }


def check_tables(described: object) -> dict[str, dict[str, Any]]:
    """Return what a manifest says of the tables. Raises :class:`BackupError` for a table that is not ours."""
    if not isinstance(described, dict) or not described.keys() <= {*names()}:
        raise BackupError("it has tables that are not ours")
    for name, one in described.items():
        try:
            days = [date.fromisoformat(day) for day in one["days"]]
            fits = (
                all(isinstance(column, str) for column in one["columns"])
                and all(type(value) is int and 0 < value < 2**62 for value in one["identities"].values())
                and type(one["rows"]) is int
                and len(days) <= DAYS_MOST
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            fits = False
        if not fits:
            raise BackupError(f"the description of its table {name} cannot be read")
    return described


async def filled(connection: asyncpg.Connection) -> list[str]:
    """Return the names of our tables that have rows, but for the list of migrations."""
    return [
        table.name
        for table in await tables(connection)
        if table.name != MIGRATIONS_TABLE and await _has_rows(connection, table)
    ]


async def _has_rows(connection: asyncpg.Connection, table: Table) -> bool:
    return bool(await connection.fetchval(f"SELECT EXISTS (SELECT FROM {_quoted(table.name)})"))  # noqa: S608


async def clear(connection: asyncpg.Connection) -> None:
    """Delete all rows of our tables."""
    present = await tables(connection)
    for table in present:
        if table.daily:
            for partition in await connection.fetch(_sql("partitions"), table.name):
                await connection.execute(f"DROP TABLE {partition[0]}")
    listed = ", ".join(_quoted(table.name) for table in present if not table.daily and table.name != MIGRATIONS_TABLE)
    await connection.execute(f"TRUNCATE {listed}")


async def write_tables(
    connection: asyncpg.Connection,
    described: Mapping[str, Mapping[str, Any]],
    parts: Callable[[str], Generator[bytes, None, None]],
    told: Callable[[str], None],
) -> None:
    """Fill our tables, which are empty, inside the caller's transaction. Raises :class:`BackupError`."""
    present = {table.name: table for table in await tables(connection)}
    for name, one in described.items():
        if lacking := {*one["columns"]} - {*(present[name].columns if name in present else ())}:
            raise BackupError(f"table {name} has no column {', '.join(sorted(lacking))} in this version")
    for day in sorted({day for one in described.values() for day in one["days"]}):
        await connection.execute("SELECT context_package_partitions($1, $1)", date.fromisoformat(day))
    await connection.execute(f"ALTER TABLE {MEMORIES_TABLE} DISABLE TRIGGER USER")
    for name, one in described.items():
        if name == MIGRATIONS_TABLE:  # that of the database is about the tables that it has
            continue
        with closing(parts(name)) as content:
            status = await connection.copy_to_table(name, source=_stream(content), columns=[*one["columns"]])
        if int(status.removeprefix("COPY ")) != one["rows"]:
            raise BackupError(f"table {name} has {status.removeprefix('COPY ')} rows, not {one['rows']}")
        for column, value in one["identities"].items():
            await connection.execute("SELECT setval(pg_get_serial_sequence($1, $2), $3)", name, column, value)
        if one["rows"]:
            told(f"{name}: {one['rows']} rows")
    await connection.execute(f"ALTER TABLE {MEMORIES_TABLE} ENABLE TRIGGER USER")
    await connection.execute(_sql("separate"))


async def forget_migrations(connection: asyncpg.Connection, had: Sequence[str]) -> None:
    """Have those that rows from a database with ``had`` alone lack be applied again."""
    await connection.execute(f"DELETE FROM {MIGRATIONS_TABLE} WHERE name <> ALL ($1)", had)  # noqa: S608


async def trim(connection: asyncpg.Connection, progressed: Sequence[Mapping[str, Any]]) -> None:
    """Delete what archive and memory have of sessions from after their copy was taken."""
    for first in range(0, len(progressed), 1000):
        some = orjson.dumps(progressed[first : first + 1000]).decode()
        await connection.execute(_sql("trim_summaries"), some)
        await connection.execute(_sql("trim_messages"), some)


async def _stream(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@cache
def _sql(name: str) -> str:
    return files("context_builder.backup.sql").joinpath(f"{name}.sql").read_text("utf-8")
