"""Migrations are numbered SQL files, applied to a database or printed for Supabase's SQL editor."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import orjson

from context_builder.database.postgres import connected

if TYPE_CHECKING:
    import asyncpg

RETENTION_DAYS: Final = 90
"""Days for which the database keeps the record of packages at least, where :func:`retain` said nothing else."""

_STATEMENT_TIMEOUT: Final = 60.0  # seconds; an existing table may be large
_IDLE_TIMEOUT: Final = "10s"  # after which a program that stopped in between holds up no other one
_LOCK: Final = 0x636F6E74657874  # "context", in ASCII: any number that no other program uses
_APPLIED: Final = "SELECT EXISTS (SELECT FROM context_builder_migrations WHERE name = $1)"


def migrations() -> dict[str, str]:
    """Return the SQL by name, such as ``001_summaries``, in the order to apply it."""
    found = (file for file in files("context_builder.database.sql").iterdir() if file.name[0].isdigit())
    return {file.name.removesuffix(".sql"): file.read_text("utf-8") for file in sorted(found, key=lambda f: f.name)}


def digests() -> dict[str, str]:
    """Return the SHA-256 of each migration, by name: what a database has on record."""
    (_, *numbered) = migrations().items()
    return {name: sha256(sql.encode()).hexdigest() for name, sql in numbered}


async def apply(url: str) -> list[str]:
    """Apply the migrations that the database lacks, each in a transaction of its own, and return their names.

    Several programs may do so at once. Raises :class:`~context_builder.errors.DatabaseError`, also for a database whose
    tables are of an earlier version: what one migration says never changes once it is released.
    """
    async with connected(url, command_timeout=_STATEMENT_TIMEOUT, migrating=True) as connection:
        beginning, numbered = _parts()
        return [name for name, sql in numbered.items() if await _apply_one(connection, beginning, name, sql)]


async def retain(url: str, days: int) -> None:
    """Have the database keep the record of packages for so many days at least, whoever calls its functions.

    Raises :class:`~context_builder.errors.DatabaseError`.
    """
    async with connected(url) as connection:
        await connection.execute("SELECT context_package_retain($1)", days)


async def lacking(url: str) -> list[str]:
    """Return the names of migrations that the database lacks. Raises :class:`~context_builder.errors.DatabaseError`."""
    async with connected(url) as connection:
        known = await connection.fetchval("SELECT to_regclass('context_builder_migrations') IS NOT NULL")
        rows = await connection.fetch("SELECT name FROM context_builder_migrations") if known else []
    held = {row["name"] for row in rows}
    return [name for name in _parts()[1] if name not in held]


async def _apply_one(connection: asyncpg.Connection, beginning: str, name: str, sql: str) -> bool:
    """Apply a migration, and return True, unless the database has it."""
    async with connection.transaction():
        await connection.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{_IDLE_TIMEOUT}'")
        await connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
        await connection.execute(beginning)
        if await connection.fetchval(_APPLIED, name):
            return False
        await connection.execute(sql)
        await connection.execute(_record(name))
        return True


def render() -> str:
    """Return all migrations as one script that may be run any number of times."""
    beginning, numbered = _parts()
    steps = (f"-- {name}\n\n{sql}\n{_record(name)}\n" for name, sql in numbered.items())
    return "\n".join(["BEGIN;\n", beginning, *steps, "COMMIT;\n"])


def _parts() -> tuple[str, dict[str, str]]:
    """Return what runs before every migration, and the migrations by name."""
    (_, ledger), *numbered = migrations().items()
    ours = orjson.dumps(digests()).decode()
    return f"{ledger}\nSELECT context_builder_refuse_earlier('{ours}');\n", dict(numbered)


def _record(name: str) -> str:
    row = f"('{name}', '{digests()[name]}')"
    return f"INSERT INTO context_builder_migrations (name, digest) VALUES {row} ON CONFLICT DO NOTHING;"  # noqa: S608
