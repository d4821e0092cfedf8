"""Routes use these services; ``wiring`` makes them, and nothing here knows settings."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from redis.asyncio import Redis

from context_builder.assembly.build_turn import BuiltContext
from context_builder.concurrency import TenantBackground
from context_builder.database.database import Database, SharedSecret
from context_builder.knowledge.audit_chain import AuditReport
from context_builder.knowledge.governance import Agent
from context_builder.knowledge.policies import PolicyStore
from context_builder.knowledge.request import Scope
from context_builder.knowledge.service import PackageService
from context_builder.knowledge.store import KnowledgeStore
from context_builder.memory.memory import MemoryStore
from context_builder.recording.library import RecordingLibrary
from context_builder.server.access.authenticator import Authenticator
from context_builder.server.access.caller import Caller
from context_builder.server.asgi.callers import ShareLimits, Shares
from context_builder.server.asgi.framing import HostNames
from context_builder.server.shared_look import SharedLooks
from context_builder.session.client import JsonObject
from context_builder.session.servers import SessionServers
from context_builder.session.store.registry import RegisteredSession


class Knowing(NamedTuple):
    """Says for whom a turn is, and in which scope, if any, knowledge takes part in it.

    What was said in the session that is its ``own`` the agent sees as it is; None where there is none.
    """

    agent: Agent
    scope: Scope | None
    own: str | None


class BuildTurn(Protocol):
    """Builds the prompt of the turn of a session, whose ``state`` is as the agent may see it, knowledge included where
    that is asked for.
    """

    async def __call__(
        self,
        state: JsonObject,
        query: str,
        *,
        max_prompt_tokens: int,
        knowledge: Knowing,
        **named: Any,
    ) -> BuiltContext: ...


VerifyAudit = Callable[[str], Awaitable[AuditReport]]
"""Verifies the audit chain of a tenant, as far back as the record is kept."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """The Redis servers with their tenants; for another tenant, the sessions of a server do not exist. ``tenant_id`` is
    that of this process.
    """

    servers: SessionServers
    tenant_id: str

    async def redis_of(self, caller: Caller, session_id: str) -> Redis | None:
        """Return the Redis that the caller's session lives on, or is to live on; None where the caller has none.

        Raises what :meth:`SessionServers.find` raises.
        """
        servers = self.servers.of_tenant(caller.tenant_id)
        if not len(servers):
            return None
        return (await servers.find(session_id) or servers.place(session_id)).redis

    async def of_caller(self, caller: Caller) -> list[RegisteredSession]:
        """Return all sessions of the caller's tenant, most recently active first."""
        return await self.servers.of_tenant(caller.tenant_id).sessions()


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that routes use.

    ``after_put`` is done for a tenant whose documents changed. ``stopping`` is set when the server is about to stop:
    long answers end then. ``has_model`` says that a language model is set up. ``recordings`` are those of this
    process's own tenant; None where nothing is recorded.
    """

    names: HostNames
    authenticator: Authenticator
    sessions: Sessions
    knowledge: KnowledgeStore
    packages: PackageService
    database: Database
    memory: MemoryStore
    build_turn: BuildTurn
    policies: PolicyStore
    verify_audit: VerifyAudit
    secret: SharedSecret
    recordings: RecordingLibrary | None
    after_put: tuple[TenantBackground, ...]
    max_message_bytes: int
    has_model: bool
    trusted_proxies: tuple[str, ...] = ()
    shares: Shares = field(default_factory=lambda: Shares(ShareLimits()))
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    looks: SharedLooks = field(default_factory=SharedLooks)
