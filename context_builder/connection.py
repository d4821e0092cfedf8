"""A client for the Redis that the settings name."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff

from context_builder.errors import SettingError, StoreError, StoreUnavailable
from context_builder.session.availability import translated

CONNECT_TIMEOUT: Final = 2.0
OLDEST_VERSION: Final = (6, 2)


def _options() -> dict[str, Any]:
    """Retries and time limits are ours: a commit knows whether it may be sent again."""
    return {
        "socket_connect_timeout": CONNECT_TIMEOUT,
        "socket_timeout": None,
        "retry": Retry(NoBackoff(), 0),
        "max_connections": 100_000,
    }


def client_for(url: str) -> Redis:
    """A client for ``redis://``, ``rediss://``, ``unix://`` or ``redis+sentinel://H1:P1,H2:P2/SERVICE/DB``."""
    scheme = url.partition("://")[0]
    if scheme.endswith("+sentinel"):
        return _sentinel_client(url, tls=scheme.startswith("rediss"))
    try:
        return Redis.from_url(url, **_options())
    except ValueError as error:
        raise SettingError(f"REDIS_URL: {error}") from None


def _sentinel_client(url: str, *, tls: bool) -> Redis:
    parts = urlsplit(url)
    credentials, _, hosts = parts.netloc.rpartition("@")
    user, _, password = credentials.partition(":")
    service, _, database = parts.path.strip("/").partition("/")
    try:
        addresses = [(host.rpartition(":")[0], int(host.rpartition(":")[2])) for host in hosts.split(",")]
        options = {**_options(), "db": int(database or 0), "ssl": tls}
    except ValueError:
        raise SettingError("REDIS_URL: a sentinel URL is redis+sentinel://host:port,host:port/service/db") from None
    if credentials:
        options |= {"username": unquote(user) or None, "password": unquote(password) or None}
    sentinel: Any = Sentinel(addresses, sentinel_kwargs={"socket_timeout": CONNECT_TIMEOUT, "ssl": tls})  # type: ignore[no-untyped-call]
    client: Redis = sentinel.master_for(service or "mymaster", **options)
    return client


def host_url(host: str, port: int, password: str | None) -> str:
    """The URL of ``REDIS_HOST``, ``REDIS_PORT`` and ``REDIS_PASSWORD``."""
    credentials = f":{quote(password, safe='')}@" if password else ""
    return f"redis://{credentials}{host}:{port}/0"


def printable(url: str) -> str:
    """``url`` without its credentials."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


async def answers(client: Redis) -> bool:
    """Whether a Redis is there. Raises :class:`StoreError` when it is, but wants a password."""
    try:
        async with translated(CONNECT_TIMEOUT):
            await client.ping()
    except StoreUnavailable:
        return False
    except StoreError as error:
        raise StoreError(f"the Redis at localhost:6379: {error}; set REDIS_PASSWORD or REDIS_URL") from None
    return True


async def check_server(client: Redis) -> str:
    """The server's version. Raises :class:`StoreError` for one that cannot hold a session."""
    async with translated():
        info: dict[str, Any] = await client.info("server")
        cluster: dict[str, Any] = await client.info("cluster")
    version = str(info.get("valkey_version") or info["redis_version"])
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_VERSION:
        raise StoreError(f"Redis {version} is too old: 6.2 or later is needed")
    if cluster.get("cluster_enabled"):
        raise StoreError("Redis Cluster cannot be used: a session's keys share no hash slot; use a single server")
    return version
