"""A package service over a real PostgreSQL and a real Redis, with a clock that is turned by hand."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from redis.asyncio import Redis

from context_builder.analysis.processes import IN_THREADS
from context_builder.assembly.metrics import ContextBuilderMetrics
from context_builder.database.database import SharedSecret
from context_builder.database.postgres import PostgresDatabase
from context_builder.knowledge.artifact import Artifact, ArtifactKind, Status
from context_builder.knowledge.cache import PackageCache
from context_builder.knowledge.govern import BoundedRedaction
from context_builder.knowledge.governance import Agent
from context_builder.knowledge.local import LocalGraph, LocalNodes, LocalVectors
from context_builder.knowledge.package import ContextPackage
from context_builder.knowledge.policies import PolicyDecisions, PolicyStore
from context_builder.knowledge.record import PackageRecord
from context_builder.knowledge.request import ContextBuildRequest
from context_builder.knowledge.service import PINNED_TIME, PackageConfig, PackageService
from context_builder.knowledge.services import KnowledgeServices
from context_builder.knowledge.store import KnowledgeStore
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.testing import ManualClock
from context_builder.tokens.counter import count_tokens
from context_builder.tracing import TraceContext
from context_builder.wiring.knowledge import redactor_of_packages

ANN = Agent("lab", frozenset({"writer"}), "ann")
BOB = Agent("lab", frozenset({"reader"}), "bob")
ADMIN = Agent("lab", frozenset({"admin"}), "root")
STRANGER = Agent("club", frozenset({"admin"}), "eve")
TRACE = TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")


@dataclass
class Lab:
    """A package service, and everything that it stands on."""

    service: PackageService
    services: KnowledgeServices
    store: KnowledgeStore
    policies: PolicyStore
    record: PackageRecord
    memory: PostgresMemory
    redis: Redis
    clock: ManualClock
    secret: SharedSecret

    async def put(self, ref: str, content: str, tenant: str = "lab", **fields: Any) -> None:
        described = {"kind": ArtifactKind.DOCUMENT, "title": f"Title of {ref}", "status": Status.APPROVED, **fields}
        await self.store.put(tenant, ref, Artifact(content=content, **described))

    async def build(self, intent: str, agent: Agent = ANN, budget: int = 2_000, **asked: Any) -> ContextPackage:
        request = ContextBuildRequest.model_validate({"intent": intent, "tokenBudget": budget, **asked})
        return await self.service.build(agent, request, TRACE)

    def again(
        self, *, retrieval_time: float = 5.0, pinned_time: float = PINNED_TIME, **services: Any
    ) -> PackageService:
        """Return another server's service over the same database, with other ``services`` where given."""
        return PackageService(
            replace(self.services, **services),
            self.record,
            PackageCache(self.redis, self.secret, patience=10),
            ContextBuilderMetrics(),
            count_tokens,
            self.clock,
            PackageConfig(retrieval_time=retrieval_time, pinned_time=pinned_time),
            self.store.sensitivities,
        )


@pytest.fixture
async def lab(migrated_url: str, redis: Redis) -> AsyncIterator[Lab]:
    database = PostgresDatabase(migrated_url)
    memory, clock = PostgresMemory(migrated_url), ManualClock()
    clock.set_wall(time.time() - clock.now().wall)  # the database has a clock of its own
    store, policies, record = KnowledgeStore(database), PolicyStore(database), PackageRecord(database, clock=clock)
    services = KnowledgeServices(
        LocalGraph(store),
        LocalVectors(store, memory),
        LocalNodes(store),
        PolicyDecisions(policies),
        BoundedRedaction(redactor_of_packages, IN_THREADS),
    )
    made = Lab(None, services, store, policies, record, memory, redis, clock, SharedSecret(database))  # type: ignore[arg-type]
    made.service = made.again()
    yield made
    await made.service.close()
    await memory.close()
    await database.close()
