"""Finds out whether Redis sends keyspace notifications of pushes to lists (``notify-keyspace-events``)."""

from __future__ import annotations

import asyncio
from secrets import token_hex
from typing import Any, Final

from redis.asyncio import Redis

from context_builder.errors import StoreError, StoreUnavailable
from context_builder.storage.redis_availability import translated

EVENTS_NEEDED: Final = "El"
"""Flags of ``notify-keyspace-events``: events of lists, told by the name of the event."""

_PROBE: Final = "context_builder:probe:"
"""Prefix of lists that are pushed to and deleted in one step, to see whether that is told."""

_ANSWER: Final = 1.0


def _push_channel(redis: Redis) -> str:
    """Return the channel on which Redis tells to which keys something was pushed on the left."""
    database = redis.connection_pool.connection_kwargs.get("db") or 0
    return f"__keyevent@{database}__:lpush"


def _probe_name() -> str:
    """Return the name of a list that there is not."""
    return _PROBE + token_hex(8)


async def _push_probe(redis: Redis, name: str) -> None:
    """Push to the list, which is gone at once."""
    async with translated(), redis.pipeline(transaction=True) as pipe:
        pipe.lpush(name, "")
        pipe.delete(name)
        await pipe.execute()


async def hears_pushes(redis: Redis) -> bool:
    """Return whether this Redis reports pushes, and lets this user hear of them.

    Raises :class:`~context_builder.errors.StoreUnavailable`.
    """
    async with redis.pubsub() as pubsub:
        try:
            async with translated():
                await pubsub.subscribe(_push_channel(redis))
                await pubsub.get_message(timeout=_ANSWER)  # that it is subscribed
        except StoreUnavailable:
            raise
        except StoreError:
            return False
        name = _probe_name()
        await _push_probe(redis, name)
        try:
            async with asyncio.timeout(_ANSWER), translated():
                while (message := await _next(pubsub)) is None or message["data"] != name.encode():
                    pass
        except TimeoutError:
            return False
    return True


async def _next(pubsub: Any) -> dict[str, Any] | None:
    message: dict[str, Any] | None = await pubsub.get_message(ignore_subscribe_messages=True, timeout=_ANSWER)
    return message
