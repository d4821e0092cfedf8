"""Each service of context packages is where the settings say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import fields
from uuid import uuid4

import pytest
from redis.asyncio import Redis

from context_builder.knowledge.artifact import Artifact, ArtifactKind, Edge, Sensitivity
from context_builder.knowledge.governance import Agent
from context_builder.knowledge.package import ContextPackage
from context_builder.knowledge.request import ContextBuildRequest
from context_builder.knowledge.service import PackageConfig
from context_builder.knowledge.services import KnowledgeServices
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.server.access.caller import Role
from context_builder.settings.settings import load_settings
from context_builder.tracing import TraceContext
from context_builder.wiring.database import open_database
from context_builder.wiring.knowledge import (
    Knowledge,
    chosen_services,
    knowledge_of,
    local_services,
    open_packages,
)
from tests.services.api_server import ApiServer

pytestmark = pytest.mark.engines

URLS = {
    "graph": "KNOWLEDGE_GRAPH_URL",
    "vectors": "VECTOR_MEMORY_URL",
    "index": "METADATA_INDEX_URL",
    "policy": "MEMORY_POLICY_URL",
    "redaction": "MEMORY_REDACTION_URL",
}
TRACE = TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
REQUEST = ContextBuildRequest.model_validate(
    {"intent": "hydrophone clips", "tokenBudget": 2_000, "scope": {"projectId": "kelp"}, "pinned": ["artifact:pin"]}
)


@asynccontextmanager
async def knowledge_and_memory(api: ApiServer) -> AsyncIterator[tuple[Knowledge, PostgresMemory]]:
    settings = load_settings({"DATABASE_URL": api.database_url}, env_file=None)
    async with open_database(settings) as database:
        memory = PostgresMemory(api.database_url)
        yield knowledge_of(database.knowledge, retention_days=90), memory
        await memory.close()


async def build(api: ApiServer, redis: Redis, tenant: str, environ: Mapping[str, str]) -> ContextPackage:
    where = load_settings(environ, env_file=None).services
    config = PackageConfig(retrieval_time=where.retrieval_time, turn_time=where.retrieval_time)
    async with (
        knowledge_and_memory(api) as (knowledge, memory),
        open_packages(knowledge, memory, redis, where, config) as packages,
    ):
        await packages.build(Agent(tenant, frozenset({"writer"}), "ann"), REQUEST, TRACE)  # connects everything
        return await packages.build(Agent(tenant, frozenset({"writer"}), "ann"), REQUEST, TRACE)


@pytest.mark.parametrize("service", URLS)
async def test_the_one_with_a_url_is_elsewhere_and_the_others_are_here(api: ApiServer, service: str) -> None:
    where = load_settings({URLS[service]: api.grpc_url}, env_file=None).services
    async with knowledge_and_memory(api) as (knowledge, memory):
        local = local_services(knowledge, memory)
        async with chosen_services(where, local) as chosen:
            elsewhere = {
                one.name
                for one in fields(KnowledgeServices)
                if getattr(chosen, one.name) is not getattr(local, one.name)
            }
    assert elsewhere == {service}


async def test_a_package_of_services_elsewhere_is_the_one_of_services_here(api: ApiServer, redis: Redis) -> None:
    tenant = f"lab-{uuid4().hex}"
    async with knowledge_and_memory(api) as (knowledge, _):
        for ref, content, sensitivity in (
            ("clips", "Hydrophone clips are labelled.", Sensitivity.INTERNAL),
            ("pin", "The archive keeps them.", Sensitivity.PUBLIC),
            ("mail", "Clips go to ann@example.org.", Sensitivity.CONFIDENTIAL),
            ("pay", "Clips cost a salary.", Sensitivity.RESTRICTED),
        ):
            artifact = Artifact(
                kind=ArtifactKind.DOCUMENT, title=ref, content=content, project_id="kelp", sensitivity=sensitivity
            )
            await knowledge.store.put(tenant, f"artifact:{ref}", artifact)
        edge = Edge(from_ref="artifact:clips", to_ref="artifact:pin", type="decided_in")
        await knowledge.store.link(tenant, [edge])
    environ = dict.fromkeys(URLS.values(), api.grpc_url) | {"KNOWLEDGE_SERVICE_TOKEN": api.key(Role.ADMIN, tenant)}
    patient = {"RETRIEVAL_TIME": "5"}
    here, there = await build(api, redis, tenant, patient), await build(api, redis, tenant, environ | patient)
    assert not [one for one in there.coverage.reasons if "service" in one]
    told = [
        [(one.ref, one.projection, one.content, one.origins, one.tokens) for one in package.sources]
        for package in (here, there)
    ]
    assert told[0] == told[1]
    assert (there.denied, there.redacted) == (here.denied, here.redacted) == (0, 1)
