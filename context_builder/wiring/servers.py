"""The Redis servers that the settings name, as one or several."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from context_builder.session.keys import validate_session_id
from context_builder.session.servers import SessionServer, SessionServers
from context_builder.settings.settings import Settings
from context_builder.wiring.app import open_redis, running_redis


@asynccontextmanager
async def open_servers(settings: Settings) -> AsyncIterator[SessionServers]:
    """Open every Redis server that the settings name, or the embedded one."""
    async with AsyncExitStack() as stack:
        servers = []
        for one in settings.of_each_server():
            redis = await stack.enter_async_context(open_redis(one))
            servers.append(SessionServer(one.redis.server_name, redis, one.memory.tenant_id))
        yield SessionServers(servers)


@asynccontextmanager
async def running_servers(settings: Settings) -> AsyncIterator[SessionServers]:
    """Open every Redis server that the settings name, or the embedded one if it runs; there may be none."""
    async with AsyncExitStack() as stack:
        servers = []
        for one in settings.of_each_server():
            if (redis := await running_redis(one)) is not None:
                stack.push_async_callback(redis.aclose)
                servers.append(SessionServer(one.redis.server_name, redis, one.memory.tenant_id))
        yield SessionServers(servers)


async def settings_of(settings: Settings, session_id: str) -> Settings:
    """Return the settings with the Redis server alone, and its tenant, that the session lives on or is to live on.

    Raises what :meth:`SessionServers.find` and :meth:`SessionServers.place` raise.
    """
    validate_session_id(session_id)
    each = settings.of_each_server()
    if len(each) == 1:
        return each[0]
    async with open_servers(settings) as servers:
        new_ones = servers.of_tenant(settings.memory.tenant_id)
        server = await servers.find(session_id) or new_ones.place(session_id)
    return next(one for one in each if one.redis.server_name == server.name)
