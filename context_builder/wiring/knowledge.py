"""The settings choose where knowledge is kept: the database that summaries are archived in.

A server relays the events of packages as long as it runs; a command opens the service, asks once and is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

from redis.asyncio import Redis

from context_builder.analysis.processes import IN_THREADS, Helpers
from context_builder.assembly.metrics import ContextBuilderMetrics
from context_builder.clock import SystemClock
from context_builder.database.database import Database, SharedSecret
from context_builder.errors import ContextBuilderError, MissingExtra, require_extra
from context_builder.knowledge.cache import PackageCache
from context_builder.knowledge.events import EventRelay
from context_builder.knowledge.govern import BoundedRedaction, redacted_by
from context_builder.knowledge.local import LocalGraph, LocalNodes, LocalVectors
from context_builder.knowledge.model_projections import ModelProjections
from context_builder.knowledge.policies import PolicyDecisions, PolicyStore
from context_builder.knowledge.record import PackageRecord
from context_builder.knowledge.service import PINNED_TIME, PackageConfig, PackageService
from context_builder.knowledge.services import KnowledgeServices
from context_builder.knowledge.store import KnowledgeStore, document_space
from context_builder.memory.memory import MemoryQuery, MemoryStore
from context_builder.redaction.redactor import RedactorChain, RedactorProtocol
from context_builder.settings.groups import KnowledgeServiceSettings
from context_builder.settings.settings import Settings
from context_builder.tokens.counter import TokenCounter
from context_builder.wiring.analysts import analysts
from context_builder.wiring.builders import UNNAMED_MODEL
from context_builder.wiring.database import open_database
from context_builder.wiring.embedded import start_embeddings
from context_builder.wiring.servers import running_redis
from context_builder.wiring.stores import store_of

if TYPE_CHECKING:
    from context_builder.knowledge.grpc.channel import ServiceChannel


T = TypeVar("T")


@asynccontextmanager
async def chosen_services(
    where: KnowledgeServiceSettings, local: KnowledgeServices
) -> AsyncIterator[KnowledgeServices]:
    """Open what packages are made with: of ``local`` what the settings do not name elsewhere."""
    urls = (where.graph_url, where.vectors_url, where.index_url, where.policy_url, where.redaction_url)
    if not any(urls):
        yield local
        return
    require_extra("grpc", "grpc", "a service over gRPC")
    from context_builder.knowledge.grpc import clients  # needs the extra
    from context_builder.knowledge.grpc.channel import ServiceChannel

    async with AsyncExitStack() as stack:
        token = where.token.get_secret_value() if where.token else None
        channels = {url: ServiceChannel(url, token, where.retrieval_time) for url in set(urls) if url is not None}
        for channel in channels.values():
            stack.push_async_callback(channel.close)

        def chosen(url: str | None, remote: Callable[[ServiceChannel], T], here: T) -> T:
            return here if url is None else remote(channels[url])

        yield KnowledgeServices(
            chosen(where.graph_url, clients.RemoteGraph, local.graph),
            chosen(where.vectors_url, clients.RemoteVectors, local.vectors),
            chosen(where.index_url, lambda channel: clients.RemoteIndex(channel, PINNED_TIME), local.index),
            chosen(where.policy_url, clients.RemotePolicy, local.policy),
            chosen(where.redaction_url, clients.RemoteRedaction, local.redaction),
        )


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known, who may see it, what was served of it, and the key that signs, in one database."""

    store: KnowledgeStore
    policies: PolicyStore
    record: PackageRecord
    secret: SharedSecret


@asynccontextmanager
async def open_knowledge(settings: Settings) -> AsyncIterator[Knowledge]:
    """Open the knowledge; the embedded PostgreSQL is started where the settings name no database."""
    async with open_database(settings) as database:
        yield knowledge_of(database.knowledge, retention_days=settings.record.retention)


def knowledge_of(database: Database, *, retention_days: int, run: Helpers = IN_THREADS) -> Knowledge:
    """Return the knowledge in a database; what may take long is left to ``run``."""
    record = PackageRecord(database, retention_days=retention_days)
    redact = BoundedRedaction(redactor_of_packages, run).redact
    store = KnowledgeStore(database, run.long, redact)
    return Knowledge(store, PolicyStore(database, run.usual), record, SharedSecret(database))


@asynccontextmanager
async def open_packages(
    knowledge: Knowledge,
    memory: MemoryStore,
    redis: Redis | None,
    where: KnowledgeServiceSettings,
    config: PackageConfig,
    run: Helpers = IN_THREADS,
) -> AsyncIterator[PackageService]:
    """Open the service of context packages over the knowledge, the memory and the cache in Redis; ``where`` tells
    what of it is elsewhere, and what may take long is left to ``run``."""
    metrics, count = ContextBuilderMetrics(), TokenCounter(UNNAMED_MODEL).count
    local = local_services(knowledge, memory, run)
    async with chosen_services(where, local) as services:
        service = PackageService(
            services,
            knowledge.record,
            PackageCache(redis, knowledge.secret),
            metrics,
            count,
            SystemClock(),
            config,
            knowledge.store.sensitivities,
        )
        try:
            yield service
        finally:
            await service.close()


def local_services(knowledge: Knowledge, memory: MemoryStore, run: Helpers = IN_THREADS) -> KnowledgeServices:
    """Return the services of context packages in this process."""
    return KnowledgeServices(
        LocalGraph(knowledge.store),
        LocalVectors(knowledge.store, memory),
        LocalNodes(knowledge.store),
        PolicyDecisions(knowledge.policies),
        BoundedRedaction(redactor_of_packages, run),
    )


async def make_projections(settings: Settings, store: KnowledgeStore, tenant_id: str) -> int:
    """Let the model, if there is one, write shorter texts of the tenant's artifacts; return for how many.

    Raises :class:`~context_builder.errors.DatabaseError` and :class:`~context_builder.errors.AnalystError`.
    """
    analyst, text, *_ = analysts(settings)
    try:
        return 0 if analyst is text else await ModelProjections(store, analyst).make_missing(tenant_id)
    finally:
        await analyst.close()


@cache
def redactor_of_packages() -> RedactorProtocol:
    """Return the redactor of confidential sources: secrets and personal data. Without the extra for these it refuses
    every text, which so is withheld: what is masked by half is not redacted."""
    from context_builder.redaction.secrets import SecretRedactor  # whose patterns take time to compile

    try:
        from context_builder.redaction.pii import PiiRedactor

        return RedactorChain(SecretRedactor(), PiiRedactor())
    except MissingExtra:
        return _Refusing()


def load_redactor() -> None:
    """Load what redacts, which takes seconds."""
    redacted_by(redactor_of_packages, ["."])


class _Refusing:
    def redact(self, text: str) -> str:
        raise MissingExtra("confidential sources need the extra `pii`: pip install 'context-builder[pii]'")


@asynccontextmanager
async def relaying_events(
    settings: Settings, database: Database, redis: Redis, record: PackageRecord
) -> AsyncIterator[None]:
    """Relay events in the block; should the relay die, the block is cancelled, and its error raised."""
    relay = event_relay(settings, database, redis, record)
    await relay.startup()
    block = asyncio.current_task()
    task = asyncio.create_task(relay.run(), name="package events")

    def end_block(done: asyncio.Task[None]) -> None:
        if block is not None and not done.cancelled() and done.exception() is not None:
            block.cancel()

    task.add_done_callback(end_block)
    try:
        yield
    finally:
        await relay.shutdown()
        await task


def event_relay(settings: Settings, database: Database, redis: Redis, record: PackageRecord) -> EventRelay:
    """Return a relay as the settings have it."""
    tenant_id = settings.memory.tenant_id
    return EventRelay(database, redis, record, tenant_id=tenant_id, events_max=settings.record.events_max)


STARTING: Final = 5.0
"""Seconds that the database and the embedding engine may take to be there, as those that have to be started do."""

PATIENCE: Final = 5.0
"""Seconds for which every source is waited for: whoever types a command has more time than an agent."""


@asynccontextmanager
async def open_package_service(
    settings: Settings, tenant_id: str, intent: str | None = None
) -> AsyncIterator[PackageService]:
    """Open the service as the settings have it. Packages are cached in the Redis that they name, or in the embedded one
    if that runs, to which their events are relayed in the end. With an ``intent``, whose packages are to be built, what
    finds their sources is warmed up.
    """
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(settings))
        memory, _ = store_of(settings, database)
        stack.push_async_callback(memory.close)
        knowledge = knowledge_of(database.knowledge, retention_days=settings.record.retention)
        if (redis := await running_redis(settings)) is not None:
            stack.push_async_callback(redis.aclose)
            stack.push_async_callback(event_relay(settings, database.knowledge, redis, knowledge.record).relay_once)
        if intent is not None:
            with suppress(ContextBuilderError, TimeoutError):  # the package says what was not there
                async with asyncio.timeout(STARTING):
                    await start_embeddings(settings)
                    await memory.search(document_space(tenant_id), MemoryQuery(intent, 1))
        config = PackageConfig(retrieval_time=PATIENCE, weights=settings.weights)
        yield await stack.enter_async_context(open_packages(knowledge, memory, redis, settings.services, config))
