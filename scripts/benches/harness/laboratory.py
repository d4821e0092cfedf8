"""A package service over a real PostgreSQL, without a cache, for measurements."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from context_builder.analysis.processes import IN_THREADS
from context_builder.assembly.metrics import ContextBuilderMetrics
from context_builder.clock import SystemClock
from context_builder.database.database import SharedSecret
from context_builder.database.migrations import apply
from context_builder.database.postgres import PostgresDatabase
from context_builder.knowledge.cache import PackageCache
from context_builder.knowledge.govern import BoundedRedaction
from context_builder.knowledge.governance import Agent
from context_builder.knowledge.local import LocalGraph, LocalNodes, LocalVectors
from context_builder.knowledge.policies import PolicyDecisions, PolicyStore
from context_builder.knowledge.record import PackageRecord
from context_builder.knowledge.service import PackageConfig, PackageService
from context_builder.knowledge.services import KnowledgeServices, MetadataIndex
from context_builder.knowledge.store import KnowledgeStore
from context_builder.knowledge.weights import PackageWeights
from context_builder.memory.memory import MemoryStore
from context_builder.redaction.redactor import NoopRedactor
from context_builder.tokens.counter import TokenCounter
from context_builder.tracing import TraceContext
from scripts.benches.harness.memory import PATIENCE, KeptEmbedder, database, serve_embeddings

TRACE: Final = TraceContext("0" * 31 + "1", "0" * 15 + "1")


@dataclass(frozen=True)
class Options:
    """``data`` has labelled texts, ``known`` documents and questions about them; ``cache`` keeps embeddings and
    ``database`` what speed is measured on for the next run. ``part`` of one is measured."""

    data: Path | None = None
    known: Path | None = None
    embeddings: bool = True
    cache: Path | None = None
    database: Path | None = None
    part: int = 1


@dataclass(frozen=True)
class Laboratory:
    """Makes services over one database."""

    database: PostgresDatabase
    store: KnowledgeStore

    def service(
        self,
        memory: MemoryStore,
        weights: PackageWeights | None = None,
        time: float = PATIENCE,
        *,
        index: MetadataIndex | None = None,
    ) -> PackageService:
        services = KnowledgeServices(
            LocalGraph(self.store),
            LocalVectors(self.store, memory),
            index or LocalNodes(self.store),
            PolicyDecisions(PolicyStore(self.database)),
            BoundedRedaction(NoopRedactor, IN_THREADS),
        )
        return PackageService(
            services,
            PackageRecord(self.database),
            PackageCache(None, SharedSecret(self.database)),
            ContextBuilderMetrics(),
            TokenCounter("gpt-4o").count,
            SystemClock(),
            PackageConfig(time, weights=weights or PackageWeights()),
        )


def agent(tenant: str) -> Agent:
    return Agent(tenant, frozenset({"writer"}), "bench")


@asynccontextmanager
async def laboratory(url: str) -> AsyncIterator[Laboratory]:
    postgres = PostgresDatabase(url, timeout=PATIENCE)
    try:
        yield Laboratory(postgres, KnowledgeStore(postgres))
    finally:
        await postgres.close()


@asynccontextmanager
async def new_laboratory(options: Options) -> AsyncIterator[tuple[Laboratory, str, KeptEmbedder | None]]:
    """A laboratory over an empty database, its URL, and an embedder where the options want one and it is installed."""
    with database() as url, serve_embeddings() if options.embeddings else nullcontext() as served:
        await apply(url)
        async with laboratory(url) as lab:
            yield lab, url, KeptEmbedder(served, options.cache) if served is not None else None
