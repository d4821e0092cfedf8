"""The settings choose the archive, and the memory: SomaBrain, or the database that summaries are archived in."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final, TypedDict

import structlog

from context_builder.archive.archive import Archive, DeferredArchive
from context_builder.engines.embeddings import MODEL
from context_builder.engines.postgres import PostgresEngine
from context_builder.errors import SettingError
from context_builder.memory.embedder import CachedEmbedder, Embedder
from context_builder.memory.engine_embedder import EngineEmbedder
from context_builder.memory.memory import DeferredMemory, MemoryStore
from context_builder.memory.openai_embedder import OpenAIEmbedder
from context_builder.memory.options import EmbeddingOptions
from context_builder.settings.settings import Settings
from context_builder.wiring.costs import budget_for, prices_of
from context_builder.wiring.embedded import (
    INSTALL_EMBEDDED,
    Described,
    embedded_database,
    embedding_engine,
    has_postgres,
    home_of,
    require_postgres,
)

log = structlog.get_logger(__name__)

WORDS_ALONE: Final = "found by words alone"
IN_REDIS_ALONE: Final = "off: summaries stay in Redis, for as long as their session does"
NOT_REMEMBERED: Final = "off: nothing is remembered beyond a session"


class _Rules(TypedDict):
    query_time: float
    in_background: bool


async def owners_url(settings: Settings, otherwise: str = "") -> str:
    """Return the address of the database itself, for what only the tables' owner may do; the embedded one is started.

    Raises :class:`~context_builder.errors.SettingError`, which says what else to do, where only Supabase's API is set.
    """
    if settings.archive.database_url is not None:
        return settings.archive.database_url.get_secret_value()
    if settings.archive.supabase_url is not None:
        advice = ", or ".join(filter(None, ("DATABASE_URL: set it to your Supabase database's address", otherwise)))
        raise SettingError(advice)
    require_postgres()
    return (await asyncio.to_thread(PostgresEngine(home_of(settings)).ensure)).url


def memory_of(settings: Settings) -> tuple[MemoryStore | None, Described]:
    """Return the memory, not connected yet, if there is one, and its name for people."""
    if settings.memory.memory == "off":
        return None, Described(NOT_REMEMBERED, "MEMORY is off")
    if not settings.somabrain.base_url and not _has_database(settings):
        return None, Described(NOT_REMEMBERED, f"set DATABASE_URL, or {INSTALL_EMBEDDED}, to remember it")
    memory, described = store_of(settings)
    if not settings.session.feed_memory:
        described = Described(f"{described.what}; not fed", "FEED_MEMORY is off")
    return memory, described


def can_join(settings: Settings) -> bool:
    """Return whether one call may remember what several sessions said: each pays for its own embeddings."""
    options = embedding_options(settings)
    return not settings.somabrain.base_url and (options is None or options.model is None)


def store_of(settings: Settings) -> tuple[MemoryStore, Described]:
    """Return the store of memories and of documents' passages, not connected yet, and its name for people.

    Raises :class:`~context_builder.errors.MissingExtra` where there is none.
    """
    if settings.somabrain.base_url:
        from context_builder.memory.somabrain import SomaBrainClient
        from context_builder.memory.somabrain_store import SomaBrainStore

        somabrain = SomaBrainStore(SomaBrainClient(settings.somabrain))
        return somabrain, Described(somabrain.name)
    embedder = embedder_of(settings)
    memory, where = _database(settings, embedder)
    if embedder is None:
        return memory, Described(f"{where}, {WORDS_ALONE}", _more_than_words(settings))
    is_ours = " (embedded)" if embedding_engine(settings) else ""
    return memory, Described(f"{where}, found by words, and by meaning with {embedder.name}{is_ours}")


def embedder_of(settings: Settings) -> Embedder | None:
    """Return the embedder that the settings name, else the embedded engine's; None where there is neither."""
    options = embedding_options(settings)
    if options is not None and options.model is not None:
        budget = budget_for([options.model], settings)
        return CachedEmbedder(OpenAIEmbedder(options, prices_of(settings), budget))
    if (engine := embedding_engine(settings)) is None:
        return None

    def restarted() -> str | None:
        address = engine.restarted()
        if address is not None and address.started:
            log.warning("embeddings.restarted", embeddings=address.name)
        return address.url if address is not None else None

    return CachedEmbedder(EngineEmbedder(MODEL, lambda: engine.ensure().url, restarted))


def _more_than_words(settings: Settings) -> str:
    if settings.memory.embedded_embeddings and not settings.embedding.base_url:
        return "pip install 'context-builder[embedded]', or set EMBEDDING_MODEL, to find by meaning too"
    return "set EMBEDDING_MODEL to find by meaning too"


def _database(settings: Settings, embedder: Embedder | None) -> tuple[MemoryStore, str]:
    memory: MemoryStore
    where = settings.archive
    rules: _Rules = {
        "query_time": settings.memory.embedding_query_time,
        "in_background": embedding_engine(settings) is not None,
    }
    if where.supabase_url and where.supabase_key:
        from context_builder.memory.supabase import SupabaseMemory

        memory = SupabaseMemory(where.supabase_url, where.supabase_key.get_secret_value(), embedder, **rules)
        return memory, memory.name
    if where.database_url:
        from context_builder.memory.postgres import PostgresMemory

        memory = PostgresMemory(where.database_url.get_secret_value(), embedder, connections=where.connections, **rules)
        return memory, memory.name
    require_postgres()
    home = home_of(settings)

    async def embedded() -> MemoryStore:
        from context_builder.memory.postgres import PostgresMemory

        return PostgresMemory(await embedded_database(home), embedder, connections=where.connections, **rules)

    return DeferredMemory("the embedded PostgreSQL", embedded), f"embedded PostgreSQL in {home}"


def embedding_options(settings: Settings) -> EmbeddingOptions | None:
    """Return the embeddings' options, if a model is named. A key goes only to the server it was meant for."""
    embedding, model = settings.embedding, settings.model
    if embedding.model is None:
        return None
    key = embedding.api_key or (None if embedding.base_url else model.openai_api_key)
    return replace(embedding, base_url=embedding.base_url or model.openai_base_url, api_key=key)


def _has_database(settings: Settings) -> bool:
    where = settings.archive
    return where.supabase_url is not None or where.database_url is not None or has_postgres()


def archive_of(settings: Settings) -> tuple[Archive | None, Described]:
    """Return the archive, not connected yet, if there is one, and its name for people."""
    archive: Archive
    where = settings.archive
    if where.archive == "off":
        return None, Described(IN_REDIS_ALONE, "ARCHIVE is off")
    if not _has_database(settings):
        return None, Described(IN_REDIS_ALONE, f"set DATABASE_URL, or {INSTALL_EMBEDDED}, to keep them for good")
    if where.supabase_url and where.supabase_key:
        from context_builder.archive.supabase import SupabaseArchive

        archive = SupabaseArchive(where.supabase_url, where.supabase_key.get_secret_value())
        return archive, Described(archive.name)
    if where.database_url:
        from context_builder.archive.postgres import PostgresArchive

        archive = PostgresArchive(where.database_url.get_secret_value())
        return archive, Described(archive.name)
    home = home_of(settings)

    async def embedded() -> Archive:
        from context_builder.archive.postgres import PostgresArchive

        return PostgresArchive(await embedded_database(home))

    hint = "set SUPABASE_URL and SUPABASE_KEY, or DATABASE_URL, for your own"
    return DeferredArchive("the embedded PostgreSQL", embedded), Described(f"embedded PostgreSQL in {home}", hint)
