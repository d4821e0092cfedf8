"""The Lua scripts beside this file, which Redis runs alone and whole."""

from __future__ import annotations

from functools import cache
from importlib import resources

from redis.asyncio import Redis
from redis.commands.core import AsyncScript


def script(client: Redis, name: str) -> AsyncScript:
    """Return the script ``name`` on the client's Redis, which loads it when it is not known yet."""
    return client.register_script(_source(name))


@cache
def _source(name: str) -> str:
    return resources.files("context_builder.session.store").joinpath(f"{name}.lua").read_text(encoding="utf-8")
