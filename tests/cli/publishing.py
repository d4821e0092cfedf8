"""A session's published keys, written by hand."""

from __future__ import annotations

import orjson
from redis.asyncio import Redis

from context_builder.session.client import Snapshot


async def publish(redis: Redis, snapshot: Snapshot) -> None:
    """Write the snapshot to its keys."""
    for key, value in (
        (f"context_builder:{snapshot.session_id}:state", snapshot.state),
        (f"conversation_state:{snapshot.session_id}", snapshot.conversation),
        (f"context_builder:{snapshot.session_id}:owner", snapshot.owner),
    ):
        if value is None:
            await redis.delete(key)
        else:
            await redis.set(key, orjson.dumps(value), ex=60)
