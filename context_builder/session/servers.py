"""Sessions live on one or several Redis servers; this module finds a session's server, or chooses a new one's."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from redis.asyncio import Redis

from context_builder.errors import StoreError, StoreUnavailable
from context_builder.session.keys import Keys
from context_builder.session.store.registry import RegisteredSession, SessionRegistry, most_recent_first
from context_builder.storage.redis_availability import translated

ANSWER: Final = 2.0
"""Seconds that a server has to say whether it holds a session."""


@dataclass(frozen=True, slots=True)
class SessionServer:
    """Describes a Redis server; ``name`` is its address without credentials. Its sessions belong to ``tenant_id``.

    ``known_settings`` are those of Redis' own settings that it does not tell, by name, as of an embedded one.
    """

    name: str
    redis: Redis
    tenant_id: str
    known_settings: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class SessionsFound:
    """The sessions of all servers that answer, most recently active first; ids that were pushed to although no session
    can have them; and, by name, why the other servers are ``away``.
    """

    sessions: list[RegisteredSession]
    unusable: list[str]
    away: dict[str, str]


class SessionServers:
    """The servers that sessions live on.

    A session stays where its listener pushes; adding a server moves none.
    """

    def __init__(self, servers: Sequence[SessionServer]) -> None:
        self._servers = tuple(servers)

    def __iter__(self) -> Iterator[SessionServer]:
        return iter(self._servers)

    def __len__(self) -> int:
        return len(self._servers)

    def of_tenant(self, tenant_id: str) -> SessionServers:
        """Return those whose sessions belong to the tenant."""
        return SessionServers([one for one in self._servers if one.tenant_id == tenant_id])

    async def sessions(self) -> list[RegisteredSession]:
        """Return every session of all servers, most recently active first.

        Raises :class:`StoreUnavailable` when one of them does not answer.
        """
        listed = await asyncio.gather(*map(self._sessions_on, self._servers))
        return most_recent_first(session for part in listed for session in part)

    async def find_all(self) -> SessionsFound:
        """Return what all servers hold. Raises :class:`StoreError` when none of them answers."""
        looks = await asyncio.gather(*map(self._look_at, self._servers), return_exceptions=True)
        found = SessionsFound([], [], {})
        for server, look in zip(self._servers, looks, strict=True):
            if isinstance(look, StoreError) and len(looks) > 1:
                found.away[server.name] = str(look)
            elif isinstance(look, BaseException):
                raise look
            else:
                found.sessions.extend(look[0])
                found.unusable.extend(look[1])
        if looks and len(found.away) == len(looks):
            raise StoreUnavailable("; ".join(f"{name}: {why}" for name, why in found.away.items()))
        return SessionsFound(most_recent_first(found.sessions), found.unusable, found.away)

    async def _look_at(self, server: SessionServer) -> tuple[list[RegisteredSession], list[str]]:
        registry = SessionRegistry(server.redis)
        return await registry.sessions(), await registry.unusable()

    async def newest(self, count: int) -> list[str]:
        """Return the ids of the newest sessions, so many of each server. Raises :class:`StoreUnavailable`."""
        parts = await asyncio.gather(*(SessionRegistry(one.redis).newest(count) for one in self._servers))
        return list(dict.fromkeys(name for part in parts for name in part))

    async def _sessions_on(self, server: SessionServer) -> list[RegisteredSession]:
        try:
            return await SessionRegistry(server.redis).sessions()
        except StoreUnavailable as error:
            raise StoreUnavailable(str(error) if len(self) == 1 else f"{server.name}: {error}") from None

    async def find(self, session_id: str) -> SessionServer | None:
        """Return the server that holds the session; None when none does, the only one when there is no other.

        Raises :class:`StoreUnavailable` when it is on none that answers while another does not answer,
        :class:`StoreError` when two hold it, and :class:`~context_builder.errors.SessionIdError`.
        """
        if len(self._servers) == 1:
            return self._servers[0]
        keys = Keys(session_id)
        looks = await asyncio.gather(*(_held(one.redis, keys) for one in self._servers))
        held = {one: look for one, look in zip(self._servers, looks, strict=True) if look}
        if held:
            surest = max(held.values())
            found = [one for one, look in held.items() if look == surest]
            if len(found) > 1:
                on = " and ".join(one.name for one in found)
                raise StoreError(f"session {session_id} is on {on}; set REDIS_URLS to the one that is meant")
            return found[0]
        if silent := [one.name for one, look in zip(self._servers, looks, strict=True) if look is None]:
            raise StoreUnavailable(f"session {session_id} may be on {' or '.join(silent)}, where Redis does not answer")
        return None

    def place(self, session_id: str) -> SessionServer:
        """Return the server for a session that is on none: the same whoever asks, by rendezvous hashing.

        Each server's weight is a hash of its name and the session's id, and the highest wins (Thaler and Ravishankar,
        "Using name-based mappings to increase hit rates", 1998). Raises :class:`StoreError` when there is no server.
        """
        if not self._servers:
            raise StoreError("none of REDIS_URLS is for sessions of this tenant")
        return max(self._servers, key=lambda one: _weight(one.name, session_id))


def _weight(name: str, session_id: str) -> bytes:
    return hashlib.blake2b(f"{name}\0{session_id}".encode(), digest_size=8).digest()


async def _held(redis: Redis, keys: Keys) -> int | None:
    """Return how much of a session a server holds: 2 for its state, 1 for deliveries alone, 0 for nothing; None when
    it does not answer."""
    try:
        async with asyncio.timeout(ANSWER), translated(), redis.pipeline(transaction=False) as pipe:
            pipe.exists(keys.checkpoint, keys.owner)
            pipe.exists(keys.input)
            state, deliveries = await pipe.execute()
    except (StoreUnavailable, TimeoutError):
        return None
    return 2 if state else int(deliveries)
