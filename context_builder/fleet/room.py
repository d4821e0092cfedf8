"""The room that the system and Redis give a worker: open files and connections."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Final

import structlog
from redis.asyncio import Redis

from context_builder.errors import StoreError
from context_builder.storage.redis_availability import translated

FEW_FILES: Final = 512
"""Below this, connections to models and databases may find none."""

log = structlog.get_logger(__name__)


def raise_open_files() -> int | None:
    """Let the process open as many files as it may, and return how many; None where the system has no such limit."""
    if find_spec("resource") is None:
        return None
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return None if soft == resource.RLIM_INFINITY else soft


async def tell_room(redis: Redis, server: str, files: int | None) -> None:
    """Tell how many files this process may open and how many clients Redis serves, and whether that is few."""
    clients = None
    with suppress(StoreError):  # the worker tells that it is away
        async with translated():
            info: dict[str, Any] = await redis.info("clients")
        clients = info.get("maxclients")
    tell = log.warning if files is not None and files < FEW_FILES else log.info
    tell("fleet.room", server=server, open_files=files, redis_clients=clients)
