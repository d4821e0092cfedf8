"""Over gRPC the services answer as they do in the process, to those who may ask, and to nobody else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from context_builder.database.postgres import PostgresDatabase
from context_builder.errors import DatabaseRejected, DatabaseUnavailable, DataRejected
from context_builder.knowledge.artifact import Artifact, ArtifactKind, Edge
from context_builder.knowledge.governance import Agent, DecisionContext, GovernedSource
from context_builder.knowledge.grpc import clients
from context_builder.knowledge.grpc.channel import MAX_MESSAGE, ServiceChannel
from context_builder.knowledge.request import GraphRetrieval, MetadataRetrieval, Scope, SemanticRetrieval
from context_builder.knowledge.services import KnowledgeServices
from context_builder.knowledge.store import KnowledgeStore
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.server.access.caller import Role
from context_builder.wiring.knowledge import knowledge_of, local_services
from tests.services.api_server import TENANT, ApiServer

pytestmark = pytest.mark.engines

LONG = "Hydrophone clips go on. " * 400


def _decided(services: KnowledgeServices, tenant: str) -> Awaitable[Any]:
    sources = [GovernedSource(f"artifact:{one}", tenant, "document", one) for one in ("internal", "confidential", "x")]
    sources.append(GovernedSource("artifact:theirs", "club", "document", "public"))
    context = DecisionContext("labels?", datetime(2026, 11, 22, 10, tzinfo=UTC))
    return services.policy.decide(Agent(tenant, frozenset({"writer"}), "ann"), sources, context)


CALLS: dict[str, Callable[[KnowledgeServices, str], Awaitable[Any]]] = {
    "neighbourhood": lambda services, tenant: services.graph.neighbourhood(
        tenant, {"artifact:protocol": 1.0, "artifact:mail": 0.5}, GraphRetrieval(edge_types=("decided_in",)), 10_000, {}
    ),
    "search": lambda services, tenant: services.vectors.search(
        tenant, "how are hydrophone clips labelled?", SemanticRetrieval(top_k=3), Scope(project_id="kelp"), 500
    ),
    "find": lambda services, tenant: services.index.find(
        tenant, MetadataRetrieval(tags=("labels",)), Scope(project_id="kelp"), 10_000
    ),
    "nodes": lambda services, tenant: services.index.nodes(
        tenant, ["artifact:mail", "artifact:nowhere", "artifact:long"], 500
    ),
    "decide": _decided,
    "redact": lambda services, _: services.redaction.redact(["Write to ann@example.org.", "", "Clips"]),
}


@asynccontextmanager
async def remote(
    api: ApiServer, credential: str | None, max_message: int = MAX_MESSAGE
) -> AsyncIterator[KnowledgeServices]:
    channel = ServiceChannel(api.grpc_url, credential, 10.0, max_message)
    yield KnowledgeServices(
        clients.RemoteGraph(channel),
        clients.RemoteVectors(channel),
        clients.RemoteIndex(channel),
        clients.RemotePolicy(channel),
        clients.RemoteRedaction(channel),
    )
    await channel.close()


@pytest.fixture
async def local(api: ApiServer) -> AsyncIterator[KnowledgeServices]:
    """The same services in this process, over the server's database."""
    database, memory = PostgresDatabase(api.database_url), PostgresMemory(api.database_url)
    yield local_services(knowledge_of(database, retention_days=90), memory)
    await memory.close()
    await database.close()


@pytest.fixture
async def tenant(api: ApiServer) -> AsyncIterator[str]:
    """A tenant that knows something."""
    name = f"lab-{uuid4().hex}"
    database = PostgresDatabase(api.database_url)
    store = KnowledgeStore(database)
    described: dict[str, Any] = {"kind": ArtifactKind.DOCUMENT, "project_id": "kelp", "tags": ("labels",)}
    for ref, content in (
        ("protocol", "Hydrophone clips are labelled by two people."),
        ("mail", "Ann."),
        ("long", LONG),
    ):
        await store.put(name, f"artifact:{ref}", Artifact(title=ref, content=content, **described))
    edges = [Edge(from_ref="artifact:protocol", to_ref="artifact:long", type="decided_in", weight=2.0)]
    await store.link(name, edges)
    yield name
    await database.close()


@pytest.mark.parametrize("call", CALLS)
async def test_the_answer_is_the_one_that_the_process_itself_gives(
    api: ApiServer, local: KnowledgeServices, tenant: str, call: str
) -> None:
    ask = CALLS[call]
    async with remote(api, api.key(Role.ADMIN, tenant)) as services:
        answer = await ask(services, tenant)
    assert answer == await ask(local, tenant)
    assert answer


@pytest.mark.parametrize("call", CALLS)
async def test_a_credential_and_a_role_are_needed(api: ApiServer, tenant: str, call: str) -> None:
    for credential in (None, "cbl_x", f"cbk_{'0' * 26}_{'a' * 43}", api.issuer.signed()[:-4]):
        async with remote(api, credential) as services:
            with pytest.raises(DatabaseRejected, match="does not take KNOWLEDGE_SERVICE_TOKEN"):
                await CALLS[call](services, tenant)
    for too_low in (Role.READER, Role.WRITER):  # all is answered unredacted, what is restricted too
        async with remote(api, api.key(too_low, tenant)) as services:
            with pytest.raises(DatabaseRejected, match="does not let"):
                await CALLS[call](services, tenant)


async def test_every_kind_of_credential_is_taken(api: ApiServer) -> None:
    for credential in (api.local_token, api.issuer.signed(roles=["admin"]), api.key(Role.ADMIN)):
        async with remote(api, credential) as services:
            assert await services.index.nodes(TENANT, ["artifact:nowhere"], 0) == {}


@pytest.mark.parametrize("call", sorted({*CALLS} - {"redact"}))  # which is about no tenant's
async def test_another_tenants_knowledge_is_refused_whatever_a_message_says(
    api: ApiServer, tenant: str, call: str
) -> None:
    async with remote(api, api.key(Role.ADMIN, f"club-{tenant}")) as services:
        with pytest.raises(DatabaseRejected, match="of this tenant"):
            await CALLS[call](services, tenant)


async def test_what_is_too_large_to_be_sent_or_taken_is_refused(api: ApiServer, tenant: str) -> None:
    async with remote(api, api.key(Role.ADMIN, tenant), max_message=8_000) as services:
        with pytest.raises(DataRejected, match="no message of this size"):
            await services.index.nodes(tenant, ["artifact:long"], 10_000)
        with pytest.raises(DataRejected, match="no message of this size"):
            await services.redaction.redact([LONG])
        assert await services.index.nodes(tenant, ["artifact:long"], 500)  # whose content is longer, and left out


async def test_what_cannot_be_sent_is_refused(api: ApiServer, tenant: str) -> None:
    async with remote(api, api.key(Role.ADMIN, tenant)) as services:
        with pytest.raises(DataRejected, match="surrogate"):
            await services.redaction.redact(["\ud800"])


async def test_nobody_there_is_told_as_such() -> None:
    channel = ServiceChannel("grpc://127.0.0.1:1", "any", 1.0)
    with pytest.raises(DatabaseUnavailable, match=r"the service at 127\.0\.0\.1:1 does not answer"):
        await clients.RemoteRedaction(channel).redact(["a"])
    await channel.close()
