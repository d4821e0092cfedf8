"""The services that calls are answered with; ``wiring`` makes them, nothing here knows settings."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NamedTuple, Protocol

from fastapi import Depends, Request
from redis.asyncio import Redis

from context_builder.assembly.prompt.built_context import BuiltContext
from context_builder.knowledge.governance import Agent
from context_builder.knowledge.policies import PolicyStore
from context_builder.knowledge.request import Scope
from context_builder.knowledge.service import PackageService
from context_builder.knowledge.store import KnowledgeStore
from context_builder.knowledge.tenant_background import TenantBackground
from context_builder.memory.memory import MemoryStore
from context_builder.server.access.authenticator import Authenticator
from context_builder.server.access.caller import Caller
from context_builder.server.asgi.authentication import current_caller
from context_builder.server.asgi.host_names import HostNames
from context_builder.server.problem import not_found
from context_builder.server.session_watch import SessionWatches
from context_builder.storage.sql_functions import SqlFunctions


class Knowing(NamedTuple):
    """Says for whom, and in which scope, knowledge takes part in a turn."""

    agent: Agent
    scope: Scope


class BuildTurn(Protocol):
    """Builds the prompt of a session's turn, in which knowledge takes part where that is asked for.

    Raises :class:`~context_builder.errors.StoreError` for an unknown session.
    """

    async def __call__(
        self,
        redis: Redis,
        session_id: str,
        query: str,
        *,
        max_prompt_tokens: int,
        knowledge: Knowing | None = None,
        **named: Any,
    ) -> BuiltContext: ...


@dataclass(frozen=True, slots=True)
class Sessions:
    """Holds the Redis whose sessions belong to ``tenant_id``; to other tenants they do not exist."""

    redis: Redis
    tenant_id: str

    def redis_of(self, caller: Caller) -> Redis | None:
        """Return the Redis with the caller's sessions; None where there are none."""
        return self.redis if caller.tenant_id == self.tenant_id else None


@dataclass(frozen=True, slots=True)
class Services:
    """Holds everything that routes use.

    ``after_put`` is done for a tenant whose documents changed. ``stopping`` is set when the server is about to stop:
    long answers end then.
    """

    names: HostNames
    authenticator: Authenticator
    sessions: Sessions
    knowledge: KnowledgeStore
    packages: PackageService
    functions: SqlFunctions
    memory: MemoryStore
    build_turn: BuildTurn
    policies: PolicyStore
    after_put: tuple[TenantBackground, ...]
    max_message_bytes: int
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    watches: SessionWatches = field(default_factory=SessionWatches)


_STATE: Final = "services"


async def _services(request: Request) -> Services:
    services: Services = getattr(request.app.state, _STATE)
    return services


async def _caller() -> Caller:
    return current_caller()


ServicesHere = Annotated[Services, Depends(_services)]
CallerHere = Annotated[Caller, Depends(_caller)]


async def _own_redis(services: ServicesHere, caller: CallerHere) -> Redis:
    if (redis := services.sessions.redis_of(caller)) is None:
        raise not_found()
    return redis


OwnRedis = Annotated[Redis, Depends(_own_redis)]
"""The Redis with the caller's sessions; without one the answer is 404."""
