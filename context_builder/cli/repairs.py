"""What ``doctor --fix`` mends, each repair in a function of its own that says what it did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from redis.exceptions import ResponseError

from context_builder.errors import ContextBuilderError, SettingError, StoreError
from context_builder.storage.redis_availability import translated

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from context_builder.settings.settings import Settings

ENV: Final = Path(".env")
PRIVATE_FILES: Final = ("serve.token", "redis.password")


Mend = Callable[[], Coroutine[Any, Any, str]]


@dataclass(frozen=True, slots=True)
class Repair:
    """Describes what can be mended; ``asks`` when it changes a server. ``mend`` returns what it did."""

    what: str
    asks: bool
    mend: Mend


async def repairs(settings: Settings) -> list[Repair]:
    """Return what is wrong here and can be mended. A server that does not answer is for the checks to tell."""
    from context_builder.wiring.embedded import home_of

    found = await asyncio.to_thread(_of_files, home_of(settings))
    for look in (_of_database(settings), *map(_of_redis, settings.of_each_server())):
        with suppress(ContextBuilderError):
            found += await look
    return found


def _of_files(home: Path) -> list[Repair]:
    missing = [] if ENV.exists() else [Repair(f"{ENV} is missing", asks=False, mend=_write_example)]
    files = (ENV, *(home / name for name in PRIVATE_FILES))
    shown = (file for file in files if file.is_file() and file.stat().st_mode & 0o077)
    return missing + [Repair(f"{file} can be read by others", asks=False, mend=_closed(file)) for file in shown]


async def _write_example() -> str:
    from context_builder.cli.settings import example_env
    from context_builder.settings.env_file import replace_text

    await asyncio.to_thread(replace_text, ENV.resolve(), example_env())
    return f"wrote {ENV} with every setting, all commented; `context-builder init` asks for the most important ones"


def _closed(file: Path) -> Mend:
    async def close() -> str:
        try:
            await asyncio.to_thread(file.chmod, 0o600)
        except OSError as error:
            raise SettingError(f"{file}: {error.strerror}") from None
        return f"{file} is its owner's alone now"

    return close


async def _of_database(settings: Settings) -> list[Repair]:
    from context_builder.database.migrations import apply, lacking
    from context_builder.wiring.database import owners_url

    if settings.archive.supabase_url is not None and settings.archive.database_url is None:
        return []
    url = await owners_url(settings)
    names = await lacking(url)

    async def migrate() -> str:
        return f"applied {', '.join(await apply(url)) or 'nothing: somebody else did'}"

    return [Repair(f"the database lacks {', '.join(names)}", asks=True, mend=migrate)] if names else []


async def _of_redis(settings: Settings) -> list[Repair]:
    from context_builder.session.arrivals import EVENTS_NEEDED, announces_pushes
    from context_builder.wiring.servers import open_redis

    found = []
    async with open_redis(settings) as redis:
        name = settings.redis.server_name
        policy = await _configured(redis, "maxmemory-policy")
        if policy not in (None, "noeviction"):
            mend = _configuring(settings, "maxmemory-policy", "noeviction")
            found.append(Repair(f"{name} may delete keys when memory is full ({policy})", asks=True, mend=mend))
        if await _configured(redis, "appendonly") == "no":
            mend = _configuring(settings, "appendonly", "yes")
            found.append(Repair(f"{name} is not append-only: a restart loses messages", asks=True, mend=mend))
        if (
            not await announces_pushes(redis)
            and (flags := await _configured(redis, "notify-keyspace-events")) is not None
        ):
            needed = flags + "".join(flag for flag in EVENTS_NEEDED if flag not in flags)
            mend = _configuring(settings, "notify-keyspace-events", needed)
            found.append(Repair(f"{name} does not report pushes", asks=True, mend=mend))
    return found


async def _configured(redis: Redis, name: str) -> str | None:
    """Return a value of the server's configuration; None where it does not tell."""
    async with translated():
        try:
            found: Any = await redis.config_get(name)
        except ResponseError:
            return None
    return str(found[name]) if name in found else None


def _configuring(settings: Settings, name: str, value: str) -> Mend:
    async def configure() -> str:
        from context_builder.wiring.servers import open_redis

        async with open_redis(settings) as redis, translated():
            try:
                await redis.config_set(name, value)
            except ResponseError:
                raise StoreError(
                    f"Redis does not let this user set {name}; set it to {value} where it is run"
                ) from None
            try:
                await redis.config_rewrite()
            except ResponseError:
                return f"set {name} to {value}; it has no file to keep that in: write it into its configuration, too"
        return f"set {name} to {value}"

    return configure
