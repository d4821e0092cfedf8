"""Prompts read what running sessions publish."""

from __future__ import annotations

import asyncio
from typing import Any

import structlog
from redis.asyncio import Redis

from context_builder.errors import SessionIdError, StoreError
from context_builder.session.client import SessionClient

log = structlog.get_logger(__name__)


class PublishedStates:
    """Reads the states of sessions from ``redis``; without one, or one that does not answer within ``patience``
    seconds, there are none. All sessions of a Redis belong to ``tenant_id``; to others they do not exist."""

    def __init__(self, redis: Redis | None, tenant_id: str, patience: float) -> None:
        self._redis = redis
        self._tenant_id = tenant_id
        self._patience = patience

    async def read(self, tenant_id: str, session_id: str) -> dict[str, Any] | None:
        """Return the state that the session publishes; None where there is none to be had."""
        if self._redis is None or tenant_id != self._tenant_id:
            return None
        try:
            async with asyncio.timeout(self._patience):
                return await SessionClient(self._redis, session_id).state()
        except SessionIdError:  # a conversation of another program
            return None
        except (StoreError, TimeoutError) as error:
            log.warning("session_state.unread", error=type(error).__name__)
            return None
