"""A list in Redis of what was committed and is not delivered yet."""

from __future__ import annotations

from typing import Any, cast

from redis.asyncio import Redis

from context_builder.session.availability import translated


class Outbox:
    """The list at ``key``, oldest first; commits add to it. Raises :class:`StoreUnavailable` as the store does."""

    def __init__(self, client: Redis, key: str) -> None:
        self._client: Any = client  # redis-py types its commands as sync or async at once
        self._key = key

    async def oldest(self) -> bytes | None:
        """The entry that has waited longest."""
        async with translated():
            return cast("bytes | None", await self._client.lindex(self._key, 0))

    async def discard(self, entry: bytes) -> None:
        """Take a delivered entry out; again is without effect."""
        async with translated():
            await self._client.lrem(self._key, 1, entry)
