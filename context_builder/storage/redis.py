"""The client of a Redis server, and what the server tells about itself: version, durability and clock."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlsplit

import hiredis
from redis.asyncio import Redis
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from context_builder.errors import CommandWithheld, SettingError, StoreError, StoreUnavailable
from context_builder.storage.redis_availability import translated

CONNECT_TIMEOUT: Final = 2.0
SENTINEL_PORT: Final = 26379
OLDEST_VERSION: Final = (6, 2)


class _Packing:
    """Packs commands with hiredis. redis-py does so only in its synchronous connections; a commit has sixty parts."""

    def pack_command(self, *args: Any) -> list[bytes]:
        name = args[0].encode() if isinstance(args[0], str) else args[0]  # which may be two words
        return [hiredis.pack_command((*name.split(), *args[1:]))]


GREETING: Final[dict[str, Any]] = {"protocol": 2, "driver_info": None}
"""A connection sends AUTH and SELECT and nothing else: some proxies hang up at HELLO or CLIENT, and some users may not
send them."""


def _options() -> dict[str, Any]:
    """Return the client's options, without retries or time limits: callers know what may be sent again."""
    return {
        **GREETING,
        "socket_connect_timeout": CONNECT_TIMEOUT,
        "socket_timeout": None,
        "retry": Retry(NoBackoff(), 0),
        "max_connections": 100_000,
    }


def client_for(url: str, setting: str = "REDIS_URL") -> Redis:
    """Return a client for ``redis://``, ``rediss://``, ``unix://`` or ``redis+sentinel://H1:P1,H2:P2/SERVICE/DB``.

    What redis-py takes as options of a URL (``?ssl_ca_certs=/etc/ca.pem``) is taken; those that begin with
    ``sentinel_`` (``sentinel_password``) are for the sentinels alone. Raises :class:`SettingError`, which names the
    ``setting`` that the URL is from.
    """
    scheme = url.partition("://")[0]
    try:
        if scheme.endswith("+sentinel"):
            client = _sentinel_client(url, tls=scheme.startswith("rediss"))
        else:
            client = Redis.from_url(url, **_options())
        pool = client.connection_pool
        pool.connection_class = type("Connection", (_Packing, pool.connection_class), {})
        connection: object = pool.make_connection()  # type: ignore[no-untyped-call]
        if isinstance(connection, SSLConnection):
            connection.ssl_context.get()
    except TypeError as error:
        raise SettingError(f"{setting}: an option is unknown: {str(error).rpartition(' ')[2]}") from None
    except OSError as error:
        raise SettingError(f"{setting}: the certificates cannot be used: {error.strerror or error}") from None
    except (ValueError, RedisError) as error:
        raise SettingError(f"{setting}: {error}") from None
    return client


def _sentinel_client(url: str, *, tls: bool) -> Redis:
    parts = urlsplit(url)
    credentials, at, hosts = parts.netloc.rpartition("@")
    service, _, database = parts.path.strip("/").partition("/")
    try:
        addresses = [
            (host.hostname, host.port or SENTINEL_PORT) for host in (urlsplit(f"//{h}") for h in hosts.split(","))
        ]
        options: dict[str, Any] = dict(parse_url(f"redis://{credentials}{at}master/{int(database or 0)}?{parts.query}"))
    except ValueError:
        raise ValueError("a sentinel URL is redis+sentinel://host:port,host:port/service/db") from None
    del options["host"]
    to_sentinels = {n.removeprefix("sentinel_"): options.pop(n) for n in [*options] if n.startswith("sentinel_")}
    secured = {"ssl": tls, **{n: v for n, v in options.items() if n.startswith("ssl_")}}
    to_sentinels |= {"socket_timeout": CONNECT_TIMEOUT, "socket_connect_timeout": CONNECT_TIMEOUT, **secured}
    to_sentinels = {**GREETING, **to_sentinels}
    sentinel: Any = Sentinel(addresses, sentinel_kwargs=to_sentinels)  # type: ignore[no-untyped-call]
    client: Redis = sentinel.master_for(service or "mymaster", **{**_options(), **options, "ssl": tls})
    return client


def host_url(host: str, port: int, password: str | None) -> str:
    """Return the URL of ``REDIS_HOST``, ``REDIS_PORT`` and ``REDIS_PASSWORD``."""
    credentials = f":{quote(password, safe='')}@" if password else ""
    return f"redis://{credentials}{host}:{port}/0"


async def answers(client: Redis) -> bool:
    """Return whether a Redis is there. Raises :class:`StoreError` when it is, but wants a password."""
    try:
        async with translated(CONNECT_TIMEOUT):
            await client.ping()
    except StoreUnavailable:
        return False
    except StoreError as error:
        raise StoreError(f"the Redis at localhost:6379: {error}; set REDIS_PASSWORD or REDIS_URL") from None
    return True


async def check_server(client: Redis) -> str:
    """Return the server's version, "unknown" where it does not tell. Raises :class:`StoreError` for a server that
    cannot hold a session.
    """
    version, mode = await _version_and_mode(client)
    numbers = re.match(r"(\d+)\.(\d+)", version)  # a server that tells none may still do
    if numbers and tuple(map(int, numbers.groups())) < OLDEST_VERSION:
        raise StoreError(f"Redis {version} is too old: 6.2 or later is needed")
    if mode == "cluster":
        raise StoreError("Redis Cluster cannot be used: a session's keys share no hash slot; use a single server")
    if mode == "sentinel":
        raise StoreError("this is a Sentinel, which holds no data; the URL is redis+sentinel://host:port/service/db")
    return version


async def _version_and_mode(client: Redis) -> tuple[str, str]:
    """Return the version and mode (standalone, cluster, sentinel) by HELLO, which every user may send, or by INFO."""
    try:
        async with translated():
            said: Any = await client.execute_command("HELLO")  # type: ignore[no-untyped-call]
    except StoreUnavailable:
        raise
    except StoreError:  # in the words of many kinds of proxies and old servers
        info = await server_info(client)
        version = info.get("valkey_version") or info.get("redis_version") or "unknown"
        return str(version), str(info.get("redis_mode", ""))
    fields = said if isinstance(said, dict) else dict(zip(said[::2], said[1::2], strict=False))
    version, mode = (fields.get(name, b"") for name in (b"version", b"mode"))
    return version.decode() or "unknown", mode.decode()


async def server_info(client: Redis) -> dict[str, Any]:
    """Return the fields of INFO; none where this user may not send it, or there is no such command."""
    try:
        async with translated():
            info: dict[str, Any] = await client.info()
    except CommandWithheld:
        return {}
    return info


_ASKED: Final = ("save", "appendfsync")
_FSYNC_NOTES: Final = {
    "everysec": "appendfsync is everysec: a power cut takes the last second or two; always is slower and loses nothing",
    "no": "appendfsync is no: a power cut takes what the system had not written, often 30 s; set everysec or always",
}


@dataclass(frozen=True, slots=True)
class Durability:
    """What a server may lose: ``faults`` lose acknowledged data without any disaster, ``notes`` are worth knowing."""

    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


async def durability_of(client: Redis, known: Mapping[str, str] | None = None) -> Durability:
    """Return how durable the server is; ``known`` are settings it does not tell. Raises :class:`StoreError`."""
    info = await server_info(client)
    try:
        async with translated():
            config = {name: str((await client.config_get(name))[name]) for name in _ASKED}
    except StoreUnavailable:
        raise
    except StoreError:  # no such command, or not for this user, as in many managed servers
        config = {}
    return judged(info, {**(known or {}), **config})


def judged(info: Mapping[str, Any], config: Mapping[str, str]) -> Durability:
    """Return what INFO and CONFIG say; a value that neither has is named as not checked."""
    found, unchecked = Durability(), []
    if info.get("role") == "slave":
        primary = f"{info.get('master_host')}:{info.get('master_port')}"
        lost = "it refuses what a session writes, or loses it to its primary's copy"
        found.faults.append(f"it is a replica of {primary}: {lost}; connect to the primary, or through Sentinel")
    policy = info.get("maxmemory_policy")
    if policy is None:
        unchecked.append("maxmemory-policy")
    elif policy != "noeviction":
        found.faults.append(f"maxmemory-policy is {policy}: {evicted_by(policy)}; set noeviction")
    if "aof_enabled" not in info:
        unchecked.append("appendonly")
    elif not info["aof_enabled"]:
        found.faults.append(f"{_without_aof(config.get('save'))}; set appendonly yes")
    elif (fsync := config.get("appendfsync")) is None:
        unchecked.append("appendfsync")
    elif fsync in _FSYNC_NOTES:
        found.notes.append(_FSYNC_NOTES[fsync])
    if unchecked:
        why = "because this Redis does not allow reading its configuration"
        found.notes.append(f"could not be checked, {why}: {', '.join(unchecked)}")
    return found


def evicted_by(policy: str) -> str:
    """Return what a server with this ``maxmemory-policy`` deletes when its memory is full."""
    if policy.startswith("volatile"):
        return "when memory is full it deletes published states, and leases, so that running sessions lose theirs"
    return "when memory is full it deletes whatever it likes: messages that wait, summaries, whole sessions"


def _without_aof(save: str | None) -> str:
    if save:
        return f"it writes only snapshots (save {save}): a crash loses all messages and summaries since the last one"
    if save is None:
        return (
            "it is not append-only: a restart loses what came since its last snapshot, or all (it does not tell save)"
        )
    return "it neither appends to a file nor makes snapshots: a restart loses every session, and messages that wait"


async def clock_skew(redis: Redis) -> float:
    """Return how many seconds Redis' clock is ahead of this machine's, negative where it is behind.

    Raises :class:`~context_builder.errors.StoreUnavailable` when Redis does not answer.
    """
    before = time.time()
    there = await redis_time(redis)
    return there - (before + time.time()) / 2


async def redis_time(redis: Redis) -> float:
    """Return the epoch seconds of Redis' clock, which is the same for all processes; a machine's own may be wrong.

    Raises :class:`~context_builder.errors.StoreUnavailable` when Redis does not answer.
    """
    async with translated():
        seconds, micros = await redis.time()
    return float(seconds + micros / 1e6)
