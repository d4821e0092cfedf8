"""A session is read as a caller may see it: as sensitive as it is stated to be, at every door."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Depends
from redis.asyncio import Redis

from context_builder.clock import moment
from context_builder.concurrency import beside_loop
from context_builder.database.database import Database
from context_builder.errors import EntryUnreadable
from context_builder.json_values import object_of, objects_of, texts_of
from context_builder.knowledge.governance import Access
from context_builder.knowledge.view import said_in
from context_builder.memory.memory import Memory
from context_builder.server.access.caller import Caller
from context_builder.server.guarded_route import CallerHere, OwnRedis, ServicesHere, SessionId
from context_builder.server.problem import not_found
from context_builder.server.services import Services
from context_builder.session.client import JsonObject, SessionClient
from context_builder.session.conversation.changes import CORRECTION
from context_builder.session.conversation.memory_batch import MemoryBatch, with_speaker
from context_builder.session.conversation.state import read_correction
from context_builder.session.keys import Keys
from context_builder.session.store.registry import RegisteredSession, SessionRegistry
from context_builder.session.stored import MESSAGE, Checkpoint
from context_builder.storage.redis_availability import read_together, translated

LOOKED_AT: Final = 1_000
"""Sessions whose sensitivities are looked up together."""

MOST_WAITING: Final = 10_000
"""Entries of a list of Redis that are looked through; more wait only where archive and memory have long been away."""


class SessionMessages:
    """Reads what was said in the sessions of one Redis, and of one tenant in the database."""

    def __init__(self, redis: Redis, database: Database, tenant_id: str) -> None:
        self._redis = redis
        self._database = database
        self._tenant_id = tenant_id

    async def after(self, session_id: str, after: int, limit: int) -> list[JsonObject] | None:
        """Return the messages that arrived after the one with the id ``after``, oldest first; None for no such session.

        Those that are no longer in Redis come from the memory, as it keeps them.
        """
        state = await SessionClient(self._redis, session_id).remembered()
        arguments = {"session": session_id, "after": after, "most": limit}
        stored = await self._database.call("context_said_after", self._tenant_id, arguments)
        if state is None and not stored and not await self._exists(session_id, after):
            return None
        waiting = await self._waiting(session_id)
        responses, buffer = (
            objects_of((state or {}).get(name)) for name in ("consilience_responses", "raw_recent_buffer")
        )

        def merged() -> list[JsonObject]:
            found = _by_id([*map(_of_row, stored), *waiting, *responses, *buffer])
            return [found[number] for number in sorted(found) if number > after][:limit]

        return await beside_loop(merged)

    async def _exists(self, session_id: str, after: int) -> bool:
        """Return whether Redis knows the session, whose first messages may wait, or some of its messages are stored."""
        if await SessionRegistry(self._redis).find(session_id) is not None:
            return True
        arguments = {"session": session_id, "after": -1, "most": 1}
        return after >= 0 and bool(await self._database.call("context_said_after", self._tenant_id, arguments))

    async def _waiting(self, session_id: str) -> list[JsonObject]:
        """Return what waits for its summary outside of the buffer, and what was summarized and waits for the memory."""
        keys = Keys(session_id)
        last = MOST_WAITING - 1
        async with translated():
            batches, pending = await read_together(
                self._redis, ("lrange", keys.memory_outbox, 0, last), ("lrange", keys.pending, 0, last)
            )
        corrected = await self._corrected(keys) if pending else {}
        return await beside_loop(_decoded, batches, pending, corrected) if batches or pending else []

    async def _corrected(self, keys: Keys) -> dict[int, tuple[str | None, str]]:
        """Return text and speaker of messages, by id, that were corrected while they wait for their summary."""
        async with translated():
            scanned: Any = self._redis.hscan_iter(keys.checkpoint, match=f"{CORRECTION}*", count=1_000)
            fields = {name.decode(errors="replace"): value async for name, value in scanned}
        return Checkpoint(keys.session_id, fields).by_id(CORRECTION, read_correction)


def _decoded(
    batches: list[bytes], pending: list[bytes], corrected: Mapping[int, tuple[str | None, str]]
) -> list[JsonObject]:
    found: dict[str, Memory] = {}
    for raw in batches:
        try:
            batch = MemoryBatch.decode(raw)
        except EntryUnreadable:
            continue
        found |= {one.id: one for one in batch.memories if one.kind == "message"}
        for old, new in batch.renamed:
            found = {known: with_speaker(one, old, new) for known, one in found.items()}
        found |= {one.id: one.applied(found[one.id]) for one in batch.amended if one.id in found}
    waiting = [one for one in map(MESSAGE.read, pending) if one.get("text")]  # of one that was struck nothing is left
    for one in waiting:
        if (correction := corrected.get(one.get("id", 0))) is not None:
            text, one["speaker"] = correction
            one["text"] = one["text"] if text is None else text
    return [*map(_of_memory, found.values()), *waiting]


def _by_id(messages: list[JsonObject]) -> dict[int, JsonObject]:
    """Return the messages by id; one that is there twice has the fields of both, those of the later one first."""
    found: dict[int, JsonObject] = {}
    for said in messages:
        if isinstance(number := said.get("id"), int):
            held = found.get(number, {})
            found[number] = {**held, **said} if held.get("text") == said.get("text") else said  # not of another run
    return found


def _of_row(row: Mapping[str, Any]) -> JsonObject:
    return _message(
        row["position"], row["text"], row["speaker"], row["said_at"], row["tags"], object_of(row["metadata"])
    )


def _of_memory(memory: Memory) -> JsonObject:
    said_at = memory.time.isoformat() if memory.time else None
    return _message(memory.position or 0, memory.text, memory.speaker, said_at, memory.tags, memory.metadata)


def _message(
    place: int, text: str, speaker: str | None, said_at: str | None, tags: Any, metadata: Mapping[str, Any]
) -> JsonObject:
    """Return a remembered message under the names of the published state.

    What is not remembered of it has its usual value, and it came when it was said.
    """
    is_consilience = bool(metadata.get("consilience"))
    time = moment(said_at)
    return {
        "id": place,
        "message_number": metadata.get("message_number"),
        "speaker": speaker,
        "text": text,
        "timestamp": said_at,
        "buffer_entry_time": time.timestamp() if time else None,
        "confidence": 1.0,
        "type": "consilience" if is_consilience else "user",
        "keywords": texts_of(metadata.get("keywords")),
        "domains": list(tags),
        "domain_confidence": {},
        **({"metadata": {}} if is_consilience else {}),
        **object_of(metadata.get("published")),
    }


CORRECTED: Final = frozenset({"text", "speaker"})
"""Fields of a message that can be corrected."""

RECHECK: Final = 1.0
"""Seconds after which a stream looks again at how sensitive its session is."""

_AS_THEY_ARE: Final = frozenset({"session_id", "type", "kind", "domains", "current_domains", "status"})
"""Fields that no people fill in."""

_KEYWORDS: Final = frozenset({"keywords", "current_keywords"})
_METADATA: Final = "metadata"
"""What a program sent along with a message: of any shape, in which names and numbers tell as much as texts."""
_LONGEST_TIME: Final = 40
_WORD: Final = re.compile(r"\w+")


class SeenSession:
    """Reads a session as its caller may see it; what that one sees redacted is redacted whole, field by field."""

    def __init__(self, services: Services, caller: Caller, session_id: str, redis: Redis, access: Access) -> None:
        self._services = services
        self._caller = caller
        self._session_id = session_id
        self._redis = redis
        self._messages = SessionMessages(redis, services.database, caller.tenant_id)
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
        explained = await SessionClient(self._redis, self._session_id).points()
        points = await beside_loop(lambda: [point.wire() for point in explained])
        if not self.is_redacted:
            return points
        for one in points:
            one["sources"] = [
                {**said, "text": ""} if said.get("clipped") else said for said in objects_of(one.get("sources"))
            ]
        return await self._shown(points)

    async def unmasked(self, after: int, limit: int) -> dict[int, frozenset[str]]:
        """Return which of ``text`` and ``speaker`` the caller sees as they are, by id, of messages as in :meth:`after`.

        The others may not be corrected: whoever edits what they see would write masks over what was said.
        """
        found = await self._messages.after(self._session_id, after, limit) or []
        if not self.is_redacted:
            return {one["id"]: CORRECTED for one in found}
        said = [{name: one.get(name) for name in CORRECTED} for one in found]
        pairs = zip(found, said, await self._shown(said), strict=True)
        return {
            one["id"]: frozenset(name for name in CORRECTED if shown[name] == was[name]) for one, was, shown in pairs
        }

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
        texts = await beside_loop(lambda: list(dict.fromkeys(_texts_in(values))))
        shown = dict(zip(texts, await self._services.packages.viewer.redacted(*texts), strict=True))
        return await beside_loop(_redacted, list(values), shown)


async def access_to_sessions(services: Services, caller: Caller, session_ids: Iterable[str]) -> dict[str, Access]:
    """Return how the caller may see what was said in each of the sessions."""
    names = list(session_ids)
    if not names:
        return {}
    stated = await services.knowledge.sensitivities(caller.tenant_id, names)
    sources = [said_in(caller.tenant_id, one, stated.get(one)) for one in names]
    return dict(zip(names, await services.packages.viewer.access(caller.agent, sources), strict=True))


async def first_seen(
    services: Services, caller: Caller, sessions: Sequence[RegisteredSession], most: int
) -> list[RegisteredSession]:
    """Return the first sessions that the caller may see, so many at most; those behind them are not looked at."""
    seen: list[RegisteredSession] = []
    for begin in range(0, len(sessions), LOOKED_AT):
        part = sessions[begin : begin + LOOKED_AT]
        access = await access_to_sessions(services, caller, [one.session_id for one in part])
        seen += [one for one in part if access[one.session_id] is not Access.DENIED]
        if len(seen) >= most:
            break
    return seen[:most]


async def seen_session(services: Services, caller: Caller, session_id: str, redis: Redis) -> SeenSession:
    """Return the session as the caller may see it. One that is denied is not there: a :class:`Problem` says so."""
    access = (await access_to_sessions(services, caller, [session_id]))[session_id]
    if access is Access.DENIED:
        raise not_found()
    return SeenSession(services, caller, session_id, redis, access)


async def _seen(session_id: SessionId, redis: OwnRedis, services: ServicesHere, caller: CallerHere) -> SeenSession:
    return await seen_session(services, caller, session_id, redis)


MUST_BE_SEEN: Final = Depends(_seen)
"""For routes that change what was said in a session: it is not there for a caller who may not see it."""


async def _read_whole(session_id: SessionId, services: ServicesHere, caller: CallerHere) -> None:
    if (await access_to_sessions(services, caller, [session_id]))[session_id] is not Access.READ:
        raise not_found()


MUST_BE_READ: Final = Depends(_read_whole)
"""For what cannot be redacted, such as raw bytes: it is not there for a caller who may not see all that was said."""

SeenHere = Annotated[SeenSession, MUST_BE_SEEN]
"""The session that the path names, as the caller may see it; 404 where that is not at all."""


def _texts_in(value: Any, name: str = "") -> Iterator[str]:
    """Yield every text that may be of people."""
    if isinstance(value, str):
        if name not in _AS_THEY_ARE and not _is_time(value):
            yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in _KEYWORDS and key != _METADATA:
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
            return {key: {} if key == _METADATA else replaced(inner, key) for key, inner in value.items()}
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
