"""A package service over a real PostgreSQL, without a cache, for measurements."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from redis.asyncio import Redis

from context_builder.assembly.govern import RedactionPolicy
from context_builder.assembly.metrics import ContextBuilderMetrics
from context_builder.clock import SystemClock
from context_builder.database.postgres import PostgresDatabase
from context_builder.database.shared_secret import SharedSecret
from context_builder.knowledge.cache import PackageCache
from context_builder.knowledge.governance import Agent
from context_builder.knowledge.local import LocalGraph, LocalNodes, LocalVectors
from context_builder.knowledge.policies import PolicyDecisions, PolicyStore
from context_builder.knowledge.record import PackageRecord
from context_builder.knowledge.service import PackageConfig, PackageService, PackageServices
from context_builder.knowledge.services import MetadataIndex
from context_builder.knowledge.store import KnowledgeStore
from context_builder.knowledge.weights import PackageWeights
from context_builder.memory.memory import MemoryStore
from context_builder.redaction.redactor import NoopRedactor
from context_builder.tokens.counter import TokenCounter

PATIENCE = 60.0
"""Seconds for a statement, on a machine that may be busy."""


@dataclass(frozen=True)
class Laboratory:
    """Makes services over one database."""

    store: KnowledgeStore
    policies: PolicyStore
    record: PackageRecord
    secret: SharedSecret

    def service(
        self,
        memory: MemoryStore,
        weights: PackageWeights,
        time: float = PATIENCE,
        *,
        redis: Redis | None = None,
        index: MetadataIndex | None = None,
    ) -> PackageService:
        services = PackageServices(
            LocalGraph(self.store),
            LocalVectors(self.store, memory),
            index or LocalNodes(self.store),
            PolicyDecisions(self.policies),
            RedactionPolicy(NoopRedactor()),
        )
        return PackageService(
            services,
            self.record,
            PackageCache(redis, self.secret),
            ContextBuilderMetrics(),
            TokenCounter("gpt-4o").count,
            SystemClock(),
            PackageConfig(time, weights=weights),
        )


def agent(tenant: str) -> Agent:
    return Agent(tenant, frozenset({"writer"}), "bench")


@asynccontextmanager
async def laboratory(url: str) -> AsyncIterator[Laboratory]:
    functions = PostgresDatabase(url, timeout=PATIENCE)
    try:
        yield Laboratory(
            KnowledgeStore(functions), PolicyStore(functions), PackageRecord(functions), SharedSecret(functions)
        )
    finally:
        await functions.close()
