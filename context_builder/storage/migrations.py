"""Migrations are numbered SQL files, applied to a database or printed for Supabase's SQL editor."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from context_builder.storage.postgres import TIMEOUT, require_driver, translated
from context_builder.storage.store_errors import ARCHIVE_ERRORS
from context_builder.storage.urls import printable

if TYPE_CHECKING:
    import asyncpg

_STATEMENT_TIMEOUT: Final = 60.0  # seconds; an existing table may be large
_IDLE_TIMEOUT: Final = "10s"  # after which a program that stopped in between holds up no other one
_LOCK: Final = 0x636F6E74657874  # "context", in ASCII: any number that no other program uses
_APPLIED: Final = "SELECT digest FROM context_builder_migrations WHERE name = $1"


def migrations() -> dict[str, str]:
    """Return the SQL by name, such as ``001_summaries``, in the order to apply it."""
    found = (file for file in files("context_builder.storage.sql").iterdir() if file.name[0].isdigit())
    return {file.name.removesuffix(".sql"): file.read_text("utf-8") for file in sorted(found, key=lambda f: f.name)}


async def apply(url: str) -> list[str]:
    """Apply the migrations that the database lacks, each in a transaction of its own, and return their names.

    One that was applied as another text is applied again, and so are those after it: all may be repeated. Several
    programs may do so at once. Raises :class:`~context_builder.errors.ArchiveError`.
    """
    require_driver()
    import asyncpg

    with translated(f"PostgreSQL at {printable(url)}", ARCHIVE_ERRORS, migrating=True):
        connection = await asyncpg.connect(
            url, timeout=TIMEOUT, command_timeout=_STATEMENT_TIMEOUT, statement_cache_size=0
        )
        try:
            (_, ledger), *numbered = migrations().items()
            applied: list[str] = []
            again = False
            for name, sql in numbered:
                held = await _apply_one(connection, ledger, name, sql, again=again)
                if again or held != _digest(sql):
                    applied.append(name)
                again = again or held not in (None, _digest(sql))
            return applied
        finally:
            connection.terminate()


async def retain(url: str, days: int) -> None:
    """Have the database keep the record of packages for so many days at least, whoever calls its functions.

    Raises :class:`~context_builder.errors.ArchiveError`.
    """
    require_driver()
    import asyncpg

    with translated(f"PostgreSQL at {printable(url)}", ARCHIVE_ERRORS):
        connection = await asyncpg.connect(url, timeout=TIMEOUT, command_timeout=TIMEOUT, statement_cache_size=0)
        try:
            await connection.execute("SELECT context_package_retain($1)", days)
        finally:
            connection.terminate()


async def lacking(url: str) -> list[str]:
    """Return the names of migrations that the database lacks. Raises :class:`~context_builder.errors.ArchiveError`."""
    require_driver()
    import asyncpg

    with translated(f"PostgreSQL at {printable(url)}", ARCHIVE_ERRORS):
        connection = await asyncpg.connect(url, timeout=TIMEOUT, command_timeout=TIMEOUT, statement_cache_size=0)
        try:
            known = await connection.fetchval("SELECT to_regclass('context_builder_migrations') IS NOT NULL")
            rows = await connection.fetch("SELECT name, digest FROM context_builder_migrations") if known else []
        finally:
            connection.terminate()
    (_, *numbered), held = migrations().items(), {row["name"]: row["digest"] for row in rows}
    return [name for name, sql in numbered if held.get(name) != _digest(sql)]


async def _apply_one(connection: asyncpg.Connection, ledger: str, name: str, sql: str, *, again: bool) -> str | None:
    """Apply a migration that the database lacks, or ``again``; return the digest of what it had of it before."""
    async with connection.transaction():
        await connection.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{_IDLE_TIMEOUT}'")
        await connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
        await connection.execute(ledger)
        held: str | None = await connection.fetchval(_APPLIED, name)
        if again or held != _digest(sql):
            await connection.execute(sql)
            await connection.execute(_record(name, sql))
        return held


def render() -> str:
    """Return all migrations as one script that may be run any number of times."""
    (_, ledger), *numbered = migrations().items()
    steps = (f"-- {name}\n\n{sql}\n{_record(name, sql)}\n" for name, sql in numbered)
    return "\n".join(["BEGIN;\n", ledger, *steps, "COMMIT;\n"])


def _record(name: str, sql: str) -> str:
    row = f"('{name}', '{_digest(sql)}')"
    again = "ON CONFLICT (name) DO UPDATE SET digest = EXCLUDED.digest, applied_at = now()"
    return f"INSERT INTO context_builder_migrations (name, digest) VALUES {row} {again};"  # noqa: S608


def _digest(sql: str) -> str:
    return sha256(sql.encode()).hexdigest()
