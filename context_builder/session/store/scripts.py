"""This module loads the Lua scripts beside this file, which Redis runs atomically."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from hashlib import sha1
from importlib import resources
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError


class Script:
    """Runs a Lua script on the client's Redis, by its digest; Redis is given the ``source`` when it does not know it.

    Unlike redis-py's own, it costs a session that is one of thousands next to nothing.
    """

    __slots__ = ("_client", "digest", "source")

    def __init__(self, client: Redis, source: str) -> None:
        self.source = source
        self._client: Any = client  # whose commands redis-py does not type
        self.digest = _digest(source)

    async def __call__(self, keys: Sequence[str] = (), args: Sequence[Any] = ()) -> Any:
        command = ("EVALSHA", self.digest, len(keys), *keys, *args)
        try:
            return await self._client.execute_command(*command)
        except NoScriptError:
            await self._client.script_load(self.source)
            return await self._client.execute_command(*command)


def script(client: Redis, name: str) -> Script:
    """Return the script ``name`` on the client's Redis."""
    return Script(client, _source(name))


@cache
def _source(name: str) -> str:
    return resources.files("context_builder.session.store").joinpath(f"{name}.lua").read_text(encoding="utf-8")


@cache
def _digest(source: str) -> str:
    return sha1(source.encode(), usedforsecurity=False).hexdigest()
