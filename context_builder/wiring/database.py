"""The settings choose the one database of a process, which archive, memory and knowledge each have a part of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from context_builder.database.database import Database
from context_builder.database.postgres import PostgresDatabase, StartedServer
from context_builder.database.supabase import SupabaseDatabase
from context_builder.engines.postgres import PostgresEngine
from context_builder.errors import SettingError
from context_builder.settings.settings import Settings
from context_builder.wiring.embedded import embedded_database, has_postgres, home_of, no_database
from context_builder.wiring.part_description import PartDescription

_OF_ARCHIVE: Final = 2
"""Connections for the archive, which sends a row now and then."""


@dataclass(frozen=True, slots=True)
class ChosenDatabase:
    """The chosen database, not connected yet: each of its parts has connections of its own."""

    whole: PostgresDatabase | SupabaseDatabase
    archive: PostgresDatabase | SupabaseDatabase
    memory: Database
    knowledge: Database
    described: PartDescription
    server: StartedServer | None = None
    """The embedded one, if it is that."""

    async def close(self) -> None:
        await self.whole.close()


def database_of(settings: Settings) -> ChosenDatabase | None:
    """Return the database that the settings name, else the embedded one; None where it is not installed."""
    where, each = settings.archive, settings.archive.connections
    whole: PostgresDatabase | SupabaseDatabase
    server = None
    if where.supabase_url and where.supabase_key and not where.database_url:
        whole = SupabaseDatabase(where.supabase_url, where.supabase_key.get_secret_value())
    elif where.database_url or has_postgres():
        address: str | StartedServer
        if where.database_url:
            address = where.database_url.get_secret_value()
        else:
            address = server = embedded_database(home_of(settings), settings.record.retention)
        whole = PostgresDatabase(address, connections=2 * each + _OF_ARCHIVE)
    else:
        return None
    hint = "set SUPABASE_URL and SUPABASE_KEY, or DATABASE_URL, for your own"
    embedded = PartDescription(f"embedded PostgreSQL in {home_of(settings)}", hint)
    return ChosenDatabase(
        whole,
        whole.part(_OF_ARCHIVE),
        whole.part(each),
        whole.part(each),
        embedded if server is not None else PartDescription(whole.name),
        server,
    )


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[ChosenDatabase]:
    """Open the database for knowledge, which there is none without; the embedded one is started.

    Raises :class:`~context_builder.errors.MissingExtra` where there is none, and
    :class:`~context_builder.errors.EngineError` where it cannot be started.
    """
    database = database_of(settings)
    if database is None:
        raise no_database()
    try:
        if database.server is not None:
            await database.server.start()
        yield database
    finally:
        await database.close()


async def owners_url(settings: Settings, otherwise: str = "") -> str:
    """Return the address of the database itself, for what only the tables' owner may do; the embedded one is started.

    Raises :class:`~context_builder.errors.SettingError`, which says what else to do, where only Supabase's API is set.
    """
    if settings.archive.database_url is not None:
        return settings.archive.database_url.get_secret_value()
    if settings.archive.supabase_url is not None:
        advice = ", or ".join(filter(None, ("DATABASE_URL: set it to your Supabase database's address", otherwise)))
        raise SettingError(advice)
    if not has_postgres():
        raise no_database()
    return (await asyncio.to_thread(PostgresEngine(home_of(settings)).ensure)).url
