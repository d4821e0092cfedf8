"""Lua scripts, which Redis runs atomically, are loaded from the package's files here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from hashlib import sha1
from importlib import resources
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

from context_builder.storage.multiplexed import MultiplexedRedis, PackedStart


class Script:
    """Runs a Lua script on the client's Redis, by its digest; with its ``source``, which Redis keeps, where Redis does
    not know it. (SCRIPT LOAD would keep it too, but some users and proxies may not send that.)

    Unlike redis-py's own, it costs a session that is one of thousands next to nothing.
    """

    __slots__ = ("_client", "digest", "source")

    def __init__(self, client: Redis, source: str) -> None:
        self.source = source
        self._client: Any = client  # whose commands redis-py does not type
        self.digest = _digest(source)

    async def __call__(self, keys: Sequence[str] = (), args: Sequence[Any] = ()) -> Any:
        try:
            return await self._client.execute_command("EVALSHA", self.digest, len(keys), *keys, *args)
        except NoScriptError:
            return await self._client.execute_command("EVAL", self.source, len(keys), *keys, *args)

    def bound(self, keys: Sequence[str], first: Sequence[Any]) -> BoundScript:
        """Return the script with its keys and its first arguments."""
        return BoundScript(self._client, self, (len(keys), *keys, *first))


class BoundScript:
    """Runs a Lua script whose keys and first arguments are always the same, so that they are packed once."""

    __slots__ = ("_by_digest", "_client", "_first", "_script")

    def __init__(self, client: Any, script: Script, first: Sequence[Any]) -> None:
        self._client = client
        self._script = script
        self._first = first
        by_digest = ("EVALSHA", script.digest, *first)
        self._by_digest = (PackedStart.of(*by_digest),) if isinstance(client, MultiplexedRedis) else by_digest

    async def __call__(self, args: Sequence[Any], patience: float) -> Any:
        """Return the answer, given the other arguments. Raises :class:`TimeoutError` after about ``patience`` seconds,
        which begin again when Redis does not know the script and is given it.
        """
        try:
            return await self._execute(*self._by_digest, *args, patience=patience)
        except NoScriptError:
            return await self._execute("EVAL", self._script.source, *self._first, *args, patience=patience)

    async def _execute(self, *command: Any, patience: float) -> Any:
        if isinstance(self._client, MultiplexedRedis):
            return await self._client.execute_command(*command, patience=patience)
        async with asyncio.timeout(patience):
            return await self._client.execute_command(*command)


def script(client: Redis, name: str, package: str = "context_builder.session.store") -> Script:
    """Return the script ``name`` of the ``package`` on the client's Redis."""
    return Script(client, _source(name, package))


@cache
def _source(name: str, package: str) -> str:
    return resources.files(package).joinpath(f"{name}.lua").read_text(encoding="utf-8")


@cache
def _digest(source: str) -> str:
    return sha1(source.encode(), usedforsecurity=False).hexdigest()
