"""Prompts read what running sessions publish."""

from __future__ import annotations

import asyncio
from typing import Any

import structlog

from context_builder.errors import SessionIdError, StoreError
from context_builder.session.client import SessionClient
from context_builder.session.servers import SessionServers

log = structlog.get_logger(__name__)


class PublishedStates:
    """Reads the states of sessions from ``servers``; without one, or one that does not answer within ``patience``
    seconds, there are none. To tenants other than a server's its sessions do not exist."""

    def __init__(self, servers: SessionServers, patience: float) -> None:
        self._servers = servers
        self._patience = patience

    async def read(self, tenant_id: str, session_id: str) -> dict[str, Any] | None:
        """Return the state that the session publishes; None where there is none to be had."""
        if not len(servers := self._servers.of_tenant(tenant_id)):
            return None
        try:
            async with asyncio.timeout(self._patience):
                server = await servers.find(session_id)
                return None if server is None else await SessionClient(server.redis, session_id).state()
        except SessionIdError:  # a conversation of another program
            return None
        except (StoreError, TimeoutError) as error:
            log.warning("session_state.unread", error=type(error).__name__)
            return None
