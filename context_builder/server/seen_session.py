"""A session is read as a caller may see it: as sensitive as it is stated to be, at every door."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Depends
from redis.asyncio import Redis

from context_builder.json_values import objects_of, texts_of
from context_builder.knowledge.governance import Access
from context_builder.knowledge.viewer import said_in
from context_builder.server.access.caller import Caller
from context_builder.server.problem import not_found
from context_builder.server.services import CallerHere, OwnRedis, Services, ServicesHere, SessionId
from context_builder.server.session_messages import SessionMessages
from context_builder.session.client import JsonObject, SessionClient

RECHECK: Final = 1.0
"""Seconds after which a stream looks again at how sensitive its session is."""

_AS_THEY_ARE: Final = frozenset({"session_id", "type", "kind", "domains", "current_domains", "status"})
"""Fields that no people fill in."""

_KEYWORDS: Final = frozenset({"keywords", "current_keywords"})
_LONGEST_TIME: Final = 40
_WORD: Final = re.compile(r"\w+")


class SeenSession:
    """Reads a session as its caller may see it; what that one sees redacted is redacted whole, field by field."""

    def __init__(self, services: Services, caller: Caller, session_id: str, redis: Redis, access: Access) -> None:
        self._services = services
        self._caller = caller
        self._session_id = session_id
        self._redis = redis
        self._messages = SessionMessages(redis, services.functions, caller.tenant_id)
        self._checked_at = time.monotonic()
        self.access = access

    @property
    def is_redacted(self) -> bool:
        return self.access is not Access.READ

    async def state(self) -> JsonObject | None:
        """Return what the session publishes; None for a session that is not known."""
        state = await SessionClient(self._redis, self._session_id).remembered()
        return state if state is None or not self.is_redacted else (await self._shown([state]))[0]

    async def after(self, session_id: str, after: int, limit: int) -> list[JsonObject] | None:
        """Return messages as :meth:`SessionMessages.after` does."""
        found = await self._messages.after(session_id, after, limit)
        return found if found is None or not self.is_redacted else await self._shown(found)

    async def points(self) -> list[JsonObject]:
        """Return the points of the summary, each with its messages; redacted, those that were cut are empty."""
        points = [point.wire() for point in await SessionClient(self._redis, self._session_id).points()]
        if not self.is_redacted:
            return points
        for one in points:
            one["sources"] = [
                {**said, "text": ""} if said.get("clipped") else said for said in objects_of(one.get("sources"))
            ]
        return await self._shown(points)

    def clock(self, conversation: JsonObject) -> JsonObject:
        """Return the silence clock; without keywords, where it would be redacted: they stand alone in it."""
        if not self.is_redacted:
            return conversation
        return {**conversation, "current_keywords": texts_of(conversation.get("active_domains"))}

    async def still_holds(self) -> bool:
        """Return whether the caller may still see the session just so; looked up every second at most."""
        now = time.monotonic()
        if now - self._checked_at < RECHECK:
            return True
        self._checked_at = now
        access = await access_to_sessions(self._services, self._caller, [self._session_id])
        return access[self._session_id] is self.access

    async def _shown(self, values: Sequence[JsonObject]) -> list[JsonObject]:
        texts = list(dict.fromkeys(_texts_in(values)))
        shown = dict(zip(texts, await self._services.packages.viewer.redacted(*texts), strict=True))
        return await asyncio.to_thread(_redacted, list(values), shown)


async def access_to_sessions(services: Services, caller: Caller, session_ids: Iterable[str]) -> dict[str, Access]:
    """Return how the caller may see what was said in each of the sessions."""
    names = list(session_ids)
    if not names:
        return {}
    stated = await services.knowledge.sensitivities(caller.tenant_id, names)
    sources = [said_in(caller.tenant_id, one, stated.get(one)) for one in names]
    return dict(zip(names, await services.packages.viewer.access(caller.agent, sources), strict=True))


async def seen_session(services: Services, caller: Caller, session_id: str, redis: Redis) -> SeenSession:
    """Return the session as the caller may see it. One that is denied is not there: a :class:`Problem` says so."""
    access = (await access_to_sessions(services, caller, [session_id]))[session_id]
    if access is Access.DENIED:
        raise not_found()
    return SeenSession(services, caller, session_id, redis, access)


async def _seen(session_id: SessionId, redis: OwnRedis, services: ServicesHere, caller: CallerHere) -> SeenSession:
    return await seen_session(services, caller, session_id, redis)


SeenHere = Annotated[SeenSession, Depends(_seen)]
"""The session that the path names, as the caller may see it; 404 where that is not at all."""


def _texts_in(value: Any, name: str = "") -> Iterator[str]:
    """Yield every text that may be of people."""
    if isinstance(value, str):
        if name not in _AS_THEY_ARE and not _is_time(value):
            yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in _KEYWORDS:
                yield from _texts_in(inner, key)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts_in(inner, name)


def _redacted(values: list[JsonObject], shown: Mapping[str, str]) -> list[JsonObject]:
    words = {word for text in shown.values() for word in _WORD.findall(text.casefold())}

    def replaced(value: Any, name: str = "") -> Any:
        if name in _KEYWORDS:  # a keyword stands alone, without what tells a secret
            return [one for one in texts_of(value) if words.issuperset(_WORD.findall(one.casefold()))]
        if isinstance(value, str):
            return value if name in _AS_THEY_ARE else shown.get(value, value)
        if isinstance(value, Mapping):
            return {key: replaced(inner, key) for key, inner in value.items()}
        return [replaced(inner, name) for inner in value] if isinstance(value, list | tuple) else value

    return [replaced(one) for one in values]


def _is_time(text: str) -> bool:
    if len(text) > _LONGEST_TIME or "T" not in text:
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
