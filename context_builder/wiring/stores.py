"""The settings choose the archive, and the memory: SomaBrain, or the database that summaries are archived in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final, TypedDict

import structlog

from context_builder.archive.archive import Archive
from context_builder.archive.postgres import PostgresArchive
from context_builder.archive.supabase import SupabaseArchive
from context_builder.database.postgres import PostgresDatabase
from context_builder.engines.embeddings import MODEL
from context_builder.memory.embedder import CachedEmbedder, Embedder
from context_builder.memory.engine_embedder import EngineEmbedder
from context_builder.memory.joining import JoiningMemory
from context_builder.memory.memory import MemoryStore
from context_builder.memory.openai_embedder import OpenAIEmbedder
from context_builder.memory.options import EmbeddingOptions
from context_builder.memory.sql_memory import SqlMemory
from context_builder.settings.settings import Settings
from context_builder.wiring.costs import budget_for, prices_of
from context_builder.wiring.database import ChosenDatabase, database_of
from context_builder.wiring.embedded import INSTALL_EMBEDDED, embedding_engine, no_database
from context_builder.wiring.part_description import PartDescription

log = structlog.get_logger(__name__)

WORDS_ALONE: Final = "found by words alone"
IN_REDIS_ALONE: Final = "off: summaries stay in Redis, for as long as their session does"
NOT_REMEMBERED: Final = "off: nothing is remembered beyond a session"


class _Rules(TypedDict):
    query_time: float
    in_background: bool


@dataclass(frozen=True, slots=True)
class Stores:
    """The archive and the memory, where there are any, and their names for people."""

    archive: Archive | None
    archive_is: PartDescription
    memory: MemoryStore | None
    memory_is: PartDescription


@asynccontextmanager
async def open_stores(settings: Settings, *, many: bool = False) -> AsyncIterator[Stores]:
    """Open archive and memory. Where ``many`` sessions remember at about the same time, it is sent together."""
    async with AsyncExitStack() as stack:
        if (database := database_of(settings)) is not None:
            stack.push_async_callback(database.close)
        archive, archive_is = archive_of(settings, database)
        memory, memory_is = memory_of(settings, database)
        if memory is not None and many and _can_join(settings):
            memory = JoiningMemory(memory)
        if archive is not None:
            stack.push_async_callback(archive.close)
        if memory is not None:
            stack.push_async_callback(memory.close)
        yield Stores(archive, archive_is, memory, memory_is)


@asynccontextmanager
async def open_memory(settings: Settings) -> AsyncIterator[tuple[MemoryStore | None, PartDescription]]:
    """Open the configured memory, or the one in the embedded database; also give its name for people."""
    async with open_stores(settings) as stores:
        yield stores.memory, stores.memory_is


def memory_of(settings: Settings, database: ChosenDatabase | None) -> tuple[MemoryStore | None, PartDescription]:
    """Return the memory, not connected yet, if there is one, and its name for people."""
    if settings.memory.memory == "off":
        return None, PartDescription(NOT_REMEMBERED, "MEMORY is off")
    if not settings.somabrain.base_url and database is None:
        return None, PartDescription(NOT_REMEMBERED, f"set DATABASE_URL, or {INSTALL_EMBEDDED}, to remember it")
    memory, described = store_of(settings, database)
    if not settings.session.feed_memory:
        described = PartDescription(f"{described.what}; not fed", "FEED_MEMORY is off")
    return memory, described


def _can_join(settings: Settings) -> bool:
    """Return whether one call may remember what several sessions said: each pays for its own embeddings."""
    options = embedding_options(settings)
    return not settings.somabrain.base_url and (options is None or options.model is None)


def store_of(settings: Settings, database: ChosenDatabase | None) -> tuple[MemoryStore, PartDescription]:
    """Return the store of memories and of documents' passages, not connected yet, and its name for people.

    Raises :class:`~context_builder.errors.MissingExtra` where there is none.
    """
    if settings.somabrain.base_url:
        from context_builder.memory.somabrain import (
            SomaBrainClient,  # takes 0.2 s, for httpx
            SomaBrainStore,
        )

        somabrain = SomaBrainStore(SomaBrainClient(settings.somabrain))
        return somabrain, PartDescription(somabrain.name)
    if database is None:
        raise no_database()
    embedder, is_ours = embedder_of(settings), embedding_engine(settings) is not None
    rules: _Rules = {"query_time": settings.memory.embedding_query_time, "in_background": is_ours}
    memory, where = SqlMemory(database.memory, embedder, **rules), database.described.what
    if embedder is None:
        return memory, PartDescription(f"{where}, {WORDS_ALONE}", _more_than_words(settings))
    ours = " (embedded)" if is_ours else ""
    return memory, PartDescription(f"{where}, found by words, and by meaning with {embedder.name}{ours}")


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


def embedding_options(settings: Settings) -> EmbeddingOptions | None:
    """Return the embeddings' options, if a model is named. A key goes only to the server it was meant for."""
    embedding, model = settings.embedding, settings.model
    if embedding.model is None:
        return None
    key = embedding.api_key or (None if embedding.base_url else model.openai_api_key)
    return replace(embedding, base_url=embedding.base_url or model.openai_base_url, api_key=key)


def archive_of(settings: Settings, database: ChosenDatabase | None) -> tuple[Archive | None, PartDescription]:
    """Return the archive, not connected yet, if there is one, and its name for people."""
    if settings.archive.archive == "off":
        return None, PartDescription(IN_REDIS_ALONE, "ARCHIVE is off")
    if database is None:
        return None, PartDescription(IN_REDIS_ALONE, f"set DATABASE_URL, or {INSTALL_EMBEDDED}, to keep them for good")
    if isinstance(database.archive, PostgresDatabase):
        return PostgresArchive(database.archive), database.described
    return SupabaseArchive(database.archive), database.described
