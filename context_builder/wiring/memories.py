"""Where memories are kept, as the settings want it: SomaBrain, or the database that summaries are archived in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from context_builder.memory.deferred import DeferredMemory
from context_builder.memory.embedder import CachedEmbedder, Embedder
from context_builder.memory.memory import MemoryStore
from context_builder.memory.openai_embedder import EmbeddingOptions, OpenAIEmbedder
from context_builder.settings.settings import Settings
from context_builder.wiring.embedded import Described, database_url, home_of

if TYPE_CHECKING:
    from context_builder.memory.somabrain import SomaBrainOptions


def memory_of(settings: Settings) -> tuple[MemoryStore, Described]:
    """The memory, not connected yet, and what people call it."""
    memory, described = _chosen(settings)
    if not settings.feed_memory:
        described = Described(f"{described.what}; not fed", "FEED_MEMORY is off")
    return memory, described


def _chosen(settings: Settings) -> tuple[MemoryStore, Described]:
    if settings.sa01_soma_base_url:
        from context_builder.memory.somabrain import SomaBrainClient
        from context_builder.memory.somabrain_store import SomaBrainStore

        somabrain = SomaBrainStore(SomaBrainClient(somabrain_options(settings.sa01_soma_base_url, settings)))
        return somabrain, Described(somabrain.name)
    embeddings = embedding_options(settings)
    embedder = CachedEmbedder(OpenAIEmbedder(embeddings)) if embeddings else None
    memory, where = _database(settings, embedder)
    if embedder is None:
        return memory, Described(f"{where}, found by words alone", "set EMBEDDING_MODEL to find by meaning too")
    return memory, Described(f"{where}, found by words and by meaning as {embedder.name} has it")


def _database(settings: Settings, embedder: Embedder | None) -> tuple[MemoryStore, str]:
    memory: MemoryStore
    wait = settings.embedding_query_time
    if settings.supabase_url and settings.supabase_key:
        from context_builder.memory.supabase import SupabaseMemory

        memory = SupabaseMemory(
            settings.supabase_url, settings.supabase_key.get_secret_value(), embedder, query_time=wait
        )
        return memory, memory.name
    if settings.database_url:
        from context_builder.memory.postgres import PostgresMemory

        memory = PostgresMemory(settings.database_url.get_secret_value(), embedder, query_time=wait)
        return memory, memory.name
    home = home_of(settings)

    async def embedded() -> MemoryStore:
        from context_builder.memory.postgres import PostgresMemory

        return PostgresMemory(await database_url(home), embedder, query_time=wait)

    return DeferredMemory("the embedded PostgreSQL", embedded), f"embedded PostgreSQL in {home}"


def embedding_options(settings: Settings) -> EmbeddingOptions | None:
    """Where embeddings come from, if the settings name a model. A key goes to the server it was meant for alone."""
    if settings.embedding_model is None:
        return None
    key = settings.embedding_api_key or (None if settings.embedding_base_url else settings.openai_api_key)
    return EmbeddingOptions(
        model=settings.embedding_model,
        base_url=settings.embedding_base_url or settings.openai_base_url,
        api_key=key.get_secret_value() if key else None,
        query_prefix=settings.embedding_query_prefix,
        passage_prefix=settings.embedding_passage_prefix,
        input_types=settings.embedding_input_types,
    )


def somabrain_options(base_url: str, settings: Settings) -> SomaBrainOptions:
    """How the SomaBrain at ``base_url`` is asked."""
    from context_builder.memory.somabrain import SomaBrainOptions

    return SomaBrainOptions(
        base_url=base_url,
        timeout=settings.sa01_soma_timeout_seconds,
        retries=settings.sa01_soma_max_retries,
        retry_base=settings.sa01_soma_retry_base_ms / 1000,
        namespace=settings.sa01_namespace,
        memory_namespace=settings.sa01_memory_namespace,
    )
