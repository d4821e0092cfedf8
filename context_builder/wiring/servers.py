"""The Redis servers that the settings name, as one or several."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

import structlog
from redis.asyncio import Redis

from context_builder.engines.redis import STANDARD_PORT, RedisEngine, is_embedded
from context_builder.engines.redis_launch import SETTINGS
from context_builder.errors import EngineError, StoreError
from context_builder.session.keys import validate_session_id
from context_builder.session.servers import SessionServer, SessionServers
from context_builder.settings.settings import Settings
from context_builder.storage.redis import answers, client_for, host_url
from context_builder.storage.urls import printable
from context_builder.wiring.embedded import redis_engine, restart_when_killed
from context_builder.wiring.part_description import PartDescription

log = structlog.get_logger(__name__)


@asynccontextmanager
async def open_servers(settings: Settings) -> AsyncIterator[SessionServers]:
    """Open every Redis server that the settings name, or the embedded one."""
    async with AsyncExitStack() as stack:
        servers = []
        for one in settings.of_each_server():
            redis, _, described = await connected_redis(one)
            stack.push_async_callback(redis.aclose)
            known = SETTINGS if described.embedded else {}
            servers.append(SessionServer(one.redis.server_name, redis, one.memory.tenant_id, known))
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


@asynccontextmanager
async def open_redis(settings: Settings) -> AsyncIterator[Redis]:
    """Open the configured Redis, or the embedded one."""
    redis, _, _ = await connected_redis(settings)
    try:
        yield redis
    finally:
        await redis.aclose()


async def connected_redis(settings: Settings) -> tuple[Redis, str, PartDescription]:
    """Return the client, the URL, which may hold a password, and what people are told."""
    if (url := await _named_redis(settings)) is not None:
        return client_for(url, settings.redis.named_by), url, PartDescription(f"Redis at {printable(url)}")
    engine = redis_engine(settings, STANDARD_PORT)
    address = await asyncio.to_thread(engine.ensure)
    hint = "; ".join(filter(None, [address.warning, "set REDIS_URL for your own"]))
    client = restart_when_killed(client_for(address.url), engine)
    return client, address.url, PartDescription(address.name, hint, address.access, embedded=True)


async def running_redis(settings: Settings) -> Redis | None:
    """Return the Redis that the settings name, or the embedded one if it runs; None where there is none to be had."""
    try:
        if (url := await _named_redis(settings)) is None:
            address = await asyncio.to_thread(redis_engine(settings, STANDARD_PORT).running)
            url = address.url if address is not None else None
    except (StoreError, EngineError) as error:
        log.warning("session_state.unread", error=type(error).__name__)
        return None
    return client_for(url, settings.redis.named_by) if url is not None else None


async def _named_redis(settings: Settings) -> str | None:
    """Return the address of the Redis that somebody set up for us; None where the embedded one is meant."""
    where = settings.of_each_server()[0].redis
    if where.url is not None:
        return where.url.get_secret_value()
    password = where.password.get_secret_value() if where.password else None
    url = host_url(where.host or "localhost", where.port, password)
    engine = redis_engine(settings, STANDARD_PORT)
    if where.host is not None:
        named = True
    elif password is not None:
        named = not engine.has_password(password)
    else:
        named = where.port != STANDARD_PORT or await _another_serves(url, engine)
    return url if named else None


async def _another_serves(url: str, engine: RedisEngine) -> bool:
    """Return whether a Redis that this home did not start serves on the standard port.

    Another user's embedded one does not: it asks for that user's password. Raises :class:`StoreError` when one that
    somebody set up asks for a password.
    """
    address = await asyncio.to_thread(engine.running)
    if address is not None and urlsplit(address.url).port == STANDARD_PORT:
        return False
    async with client_for(url) as client:
        try:
            return await answers(client)
        except StoreError:
            if await asyncio.to_thread(is_embedded, STANDARD_PORT):
                return False
            raise
