"""The settings make the server's services, and say who may ask."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any, Final

from context_builder.analysis.processes import BoundedProcess, BoundedProcesses, Helpers
from context_builder.assembly.build_turn import BuiltContext
from context_builder.assembly.builder import ContextBuilder
from context_builder.concurrency import Background, TenantBackground
from context_builder.database.database import Database
from context_builder.errors import DatabaseUnavailable, ProjectUnknown, SettingError
from context_builder.knowledge.audit_chain import AuditReport, verify
from context_builder.knowledge.govern import TurnMemories
from context_builder.knowledge.service import PackageConfig, PackageService
from context_builder.knowledge.services import KnowledgeServices
from context_builder.knowledge.store import KnowledgeStore, document_space
from context_builder.recording.library import RecordingLibrary
from context_builder.server.access.api_keys import ApiKeys
from context_builder.server.access.authenticator import Authenticator, CachedKeys, LocalToken, local_token
from context_builder.server.access.jwt_verifier import FileKeySet, JwtVerifier, KeySet, UrlKeySet, fetch_from
from context_builder.server.asgi.callers import ShareLimits, Shares
from context_builder.server.asgi.framing import HostNames, is_loopback
from context_builder.server.services import Knowing, Services, Sessions, VerifyAudit
from context_builder.session.client import JsonObject
from context_builder.settings.settings import Settings
from context_builder.wiring.builders import build_for_state, open_builder_with, redacting
from context_builder.wiring.database import open_database
from context_builder.wiring.embedded import home_of, start_embeddings
from context_builder.wiring.knowledge import (
    knowledge_of,
    load_redactor,
    local_services,
    make_projections,
    open_packages,
    relaying_events,
)
from context_builder.wiring.part_description import PartDescription
from context_builder.wiring.servers import open_servers
from context_builder.wiring.stores import embedder_of, store_of

_LONG_PLACES: Final = 2
"""Tenants whose long work is done at a time."""

LOOK_AGAIN: Final = 60.0
"""Seconds after which the server looks again for passages that another process stored and did not embed."""


@dataclass(frozen=True, slots=True)
class OpenServices:
    """The services, and what the banner says about them."""

    services: Services
    hosted: KnowledgeServices
    """What others are answered with over gRPC: this process's own, wherever its packages come from."""
    memory_is: PartDescription
    local_token_file: str
    """Empty where the local token does not let anybody in."""


@asynccontextmanager
async def open_services(settings: Settings, *, for_this_user: bool = False) -> AsyncIterator[OpenServices]:
    """Open everything that the server answers with; ``for_this_user`` alone, nobody shows a credential.

    Raises :class:`SettingError` for an address that others reach, while nobody could show who they are.
    """
    tenant_id = settings.memory.tenant_id
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(open_servers(settings))
        redis = next(iter(servers)).redis  # packages are cached there, and events of them told
        database = await stack.enter_async_context(open_database(settings))
        keys = ApiKeys(database.knowledge, tenant_id)
        tokens = jwt_verifier(settings)
        is_local = for_this_user or is_loopback(settings.server.host)
        if not await _are_there(keys, is_needed=not is_local and tokens is None):
            raise SettingError(
                f"SERVE_HOST: {settings.server.host} is reached by others, and there is neither an API key "
                "(`context-builder keys create`) nor AUTH_JWKS_URL or AUTH_JWKS_FILE"
            )
        local = LocalToken(local_token(home_of(settings)), tenant_id) if is_local else None
        memory, memory_is = store_of(settings, database)
        stack.push_async_callback(memory.close)
        usual, long = BoundedProcess(begin=load_redactor), BoundedProcesses(_LONG_PLACES, begin=load_redactor)
        for process in (usual, long):
            stack.callback(process.close)
        helpers = Helpers(usual, long)
        knowledge = knowledge_of(database.knowledge, retention_days=settings.record.retention, run=helpers)
        after_put = (
            TenantBackground("embeddings", lambda tenant: memory.embed_missing(document_space(tenant))),
            TenantBackground("projections", lambda tenant: make_projections(settings, knowledge.store, tenant)),
        )
        for work in after_put:
            stack.push_async_callback(work.close)
        embeddings, _ = after_put
        await stack.enter_async_context(_watching(embeddings, tenant_id))
        await stack.enter_async_context(relaying_events(settings, database.knowledge, redis, knowledge.record))
        limit = settings.services.retrieval_time
        config = PackageConfig(
            retrieval_time=limit, turn_time=limit, at_once=settings.archive.connections, weights=settings.weights
        )
        opened = open_packages(knowledge, memory, redis, settings.services, config, helpers)
        packages = await stack.enter_async_context(opened)
        remembered = None if settings.memory.memory == "off" else memory
        builder = await stack.enter_async_context(open_builder_with(settings, remembered))
        services = Services(
            names=HostNames.of(settings.server.host, settings.server.names.split(",")),
            authenticator=Authenticator(
                CachedKeys(keys.caller), tokens, local, key_digests=CachedKeys(keys.caller_by_digest)
            ),
            sessions=Sessions(servers, tenant_id),
            knowledge=knowledge.store,
            packages=packages,
            database=database.knowledge,
            memory=redacting(memory, settings, refuses=True),
            build_turn=_turns(builder, packages, knowledge.store),
            policies=knowledge.policies,
            secret=knowledge.secret,
            verify_audit=_audits(database.knowledge, settings.record.retention),
            recordings=RecordingLibrary(folder) if (folder := settings.process.record_dir) else None,
            after_put=after_put,
            max_message_bytes=settings.session.max_message_bytes,
            has_model=has_model(settings),
            shares=Shares(
                ShareLimits(
                    settings.server.caller_rate,
                    settings.server.tenant_rate,
                    settings.server.caller_streams,
                    settings.server.tenant_streams,
                    settings.server.tenant_requests,
                )
            ),
            trusted_proxies=tuple(one.strip() for one in settings.server.proxies.split(",") if one.strip()),
        )
        hosted = local_services(knowledge, memory, helpers)
        await stack.enter_async_context(warming_up(settings, packages))
        yield OpenServices(services, hosted, memory_is, str(home_of(settings) / "serve.token") if local else "")


@asynccontextmanager
async def _watching(embeddings: TenantBackground, tenant_id: str) -> AsyncIterator[None]:
    """Embed what ``ingest`` stores for the tenant, too."""
    task = asyncio.create_task(embeddings.watch(tenant_id, LOOK_AGAIN), name="embeddings watch")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _are_there(keys: ApiKeys, *, is_needed: bool) -> bool:
    """Return whether there is a key, where one is needed.

    Raises what the database refuses for good, such as one without our tables; where no key is needed, it may be away.
    """
    try:
        return await keys.exist() or not is_needed
    except DatabaseUnavailable:
        if is_needed:
            raise
        return True


@asynccontextmanager
async def warming_up(settings: Settings, packages: PackageService) -> AsyncIterator[None]:
    """Load and connect what packages are built with, beside whatever is asked first."""

    async def warm_up() -> None:
        if embedder_of(settings) is not None:
            await asyncio.to_thread(import_module, "openai.resources.embeddings")
        await start_embeddings(settings)
        await packages.warm_up(settings.memory.tenant_id)

    background = Background()
    background.start("warm up", warm_up())
    try:
        yield
    finally:
        await background.cancel()


@asynccontextmanager
async def open_api_keys(settings: Settings) -> AsyncIterator[ApiKeys]:
    """Open the API keys alone."""
    async with open_database(settings) as database:
        yield ApiKeys(database.knowledge, settings.memory.tenant_id)


def has_model(settings: Settings) -> bool:
    """Return whether a language model is set up."""
    model = settings.model
    return any(one is not None for one in (model.openai_api_key, model.openai_base_url, model.local_model_url))


def jwt_verifier(settings: Settings) -> JwtVerifier | None:
    """Return what verifies JWTs, where the settings say by which keys."""
    where = settings.server
    keys: KeySet
    if where.audience is None or where.issuer is None:
        return None
    if where.jwks_file is not None:
        keys = FileKeySet(where.jwks_file)
    elif where.jwks_url is not None:
        keys = UrlKeySet(fetch_from(where.jwks_url))
    else:
        return None
    return JwtVerifier(keys, where.audience, where.issuer)


def _audits(database: Database, retention_days: int) -> VerifyAudit:
    async def verify_audit(tenant_id: str) -> AuditReport:
        oldest = datetime.now(UTC).date() - timedelta(days=retention_days)
        return await verify(database, tenant_id, oldest=oldest)

    return verify_audit


def _turns(builder: ContextBuilder, packages: PackageService, knowledge_store: KnowledgeStore) -> Any:
    async def build_turn(
        state: JsonObject,
        query: str,
        *,
        max_prompt_tokens: int,
        knowledge: Knowing,
        **named: Any,
    ) -> BuiltContext:
        if knowledge.scope is not None and not await packages.knows_project(knowledge.agent.tenant, knowledge.scope):
            raise ProjectUnknown(knowledge.scope.project_id)
        memories = TurnMemories(knowledge.own, knowledge_store.sensitivities)
        asking = builder.with_source(*packages.for_turn(knowledge.agent, knowledge.scope, memories))
        return await build_for_state(state, asking, query, max_prompt_tokens=max_prompt_tokens, **named)

    return build_turn
