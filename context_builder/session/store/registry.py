"""The registry lists all sessions that a Redis holds, finds those that outlived their retention, and forgets one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from secrets import token_hex
from typing import Any, Final, cast

import structlog
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from context_builder.errors import StoreError, StoreUnavailable, WrongKeyType
from context_builder.session.keys import (
    FORGOTTEN,
    PACKAGE,
    RECEIVERS,
    SESSIONS,
    SLEEPERS,
    SUMMARY_SEQS,
    Keys,
    Receiver,
    dead_count_field,
    is_session_id,
    split_key,
)
from context_builder.session.store.lease import is_forgotten
from context_builder.session.store.scripts import script
from context_builder.session.store.store import END_REQUEST, TOMBSTONE, TOMBSTONE_MS
from context_builder.session.stored import HEAD, OWNER
from context_builder.storage.redis_availability import read_together, translated

MARK_CHARS: Final = 16
"""Characters of a mark for each time that the session was forgotten."""

MARKS: Final = 8
"""Most times of forgetting that are distinguished: a Redis that falls back behind more of them looks like one in which
the session was forgotten again."""

MARK_BYTES: Final = MARKS * (MARK_CHARS + 1) - 1

REQUEST_SECONDS: Final = 600
"""A request that no owner sees for so long is void."""

LOOKED_AT_ONCE: Final = 100
"""Sessions that are looked at in one exchange with Redis, whose six hundred commands hold the loop for milliseconds."""


@dataclass(frozen=True, slots=True)
class RegisteredSession:
    """Describes one session; ``last_active`` in epoch seconds, ``owner`` the lease's holder while somebody runs it.

    ``asleep`` says, in a list of sessions, that a fleet runs it again as soon as somebody speaks. ``failing`` has, by
    task, the model calls that fail: since when, how often, and why. ``undeliverable`` counts, by receiver, what was
    refused for good. ``fault`` names what somebody else made of one of its keys, of which nothing is counted then;
    empty when all is as it should be.
    """

    session_id: str
    owner: dict[str, Any] | None
    last_active: float | None
    ended_at: float | None
    messages: int
    waiting: int
    pending: int
    undelivered: int
    unremembered: int
    dead_letters: int
    undeliverable: dict[Receiver, int]
    failing: dict[str, Any] = field(default_factory=dict)
    asleep: bool = False
    fault: str = ""

    @property
    def status(self) -> str:
        """Return ``running``, ``ended``, ``stored`` (to be continued) or ``new`` (pushed to, but never run)."""
        if self.owner is not None:
            return "running"
        if self.last_active is None:
            return "new"
        return "stored" if self.ended_at is None else "ended"

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "status": self.status}


def most_recent_first(sessions: Iterable[RegisteredSession]) -> list[RegisteredSession]:
    """Return the sessions in the order of their last activity, those that never ran first; by id where that is one."""
    return sorted(sessions, key=lambda session: (-(session.last_active or float("inf")), session.session_id))


log = structlog.get_logger(__name__)


class SessionRegistry:
    """Looks across sessions. Every method raises ``StoreUnavailable`` when Redis cannot be reached."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._forget = script(client, "forget")
        self._sweep = script(client, "sweep")

    async def sessions(self) -> list[RegisteredSession]:
        """Return every session with a checkpoint or deliveries, most recently active first."""
        scored = await self._by_activity(0, -1, withscores=True)
        active: dict[str, float] = {_decoded(name): at for name, at in scored}
        names = list(filter(is_session_id, {*active, *await self._pushed_to()}))
        listed: list[RegisteredSession] = []
        for start in range(0, len(names), LOOKED_AT_ONCE):
            part = names[start : start + LOOKED_AT_ONCE]
            listed += await self._look({name: active.get(name) for name in part})
        asleep = await self._asleep() if listed else frozenset()
        told = (replace(one, asleep=True) if one.owner is None and one.session_id in asleep else one for one in listed)
        return await asyncio.to_thread(most_recent_first, told)

    async def _asleep(self) -> frozenset[str]:
        """Return what a fleet has put to sleep, as far as this user of Redis may read the fleet's keys."""
        try:
            async with translated():
                names: list[bytes] = await cast("Any", self._client).zrange(SLEEPERS, 0, -1)
        except StoreError:
            return frozenset()
        return frozenset(map(_decoded, names))

    async def _by_activity(self, first: int | str, last: float, **how: bool) -> list[Any]:
        """Return a part of the sessions in the order of their last activity. Raises :class:`WrongKeyType`."""
        try:
            async with translated():
                found: list[Any] = await cast("Any", self._client).zrange(SESSIONS, first, last, **how)
                return found
        except WrongKeyType:
            raise WrongKeyType(f"{SESSIONS} is no sorted set; delete or rename the key") from None

    async def unusable(self) -> list[str]:
        """Return the ids of inputs that were pushed to although no session can have them."""
        return sorted(name for name in await self._pushed_to() if not is_session_id(name))

    async def _pushed_to(self) -> set[str]:
        async with translated():
            keys = [split_key(key) async for key in self._client.scan_iter("context_builder:*:input", count=1000)]
        return {key[0] for key in keys if key is not None}

    async def newest(self, count: int) -> list[str]:
        """Return the ids of so many sessions with a checkpoint, most recently active first."""
        names = await self._by_activity(0, count - 1, desc=True)
        return [*filter(is_session_id, map(_decoded, names))]

    async def find(self, session_id: str) -> RegisteredSession | None:
        """Return one session, if anything at all is known of it. Raises :class:`SessionIdError`."""
        keys = Keys(session_id)
        others = [key for key in keys.all() if key != keys.owner]
        async with translated():
            kept, owner, last_active = await read_together(
                self._client,
                ("exists", *others),
                ("get", keys.owner),
                ("zscore", SESSIONS, session_id),
                raises=False,
            )
        held = OWNER.read(owner if isinstance(owner, bytes) else None)
        if not kept and last_active is None and (owner is None or is_forgotten(held)):
            return None
        return (await self._look({session_id: last_active}))[0]

    async def _look(self, last_active: Mapping[str, float | None]) -> list[RegisteredSession]:
        """Return these sessions as they are at one moment."""
        reads: list[tuple[Any, ...]] = []
        for name in last_active:
            keys = Keys(name)
            reads.append(("get", keys.owner))
            reads.append(("hmget", keys.checkpoint, ["head", *map(dead_count_field, RECEIVERS)]))
            reads += (("llen", key) for key in _counted(keys))
        async with translated():
            answers = iter(await read_together(self._client, *reads, raises=False))
        looks = zip(*[answers] * _ANSWERS, strict=True)
        return [_registered(name, at, look) for (name, at), look in zip(last_active.items(), looks, strict=True)]

    async def owner(self, session_id: str) -> dict[str, Any] | None:
        """Return who runs the session, if anybody does: a value that is not a lease is nobody's."""
        try:
            async with translated():
                value = await self._client.get(Keys(session_id).owner)
        except WrongKeyType:
            return None
        return OWNER.read(value) or None

    async def request_end(self, session_id: str) -> bool:
        """Ask whoever runs the session to end it; return false when nobody does."""
        if await self.owner(session_id) is None:
            return False
        async with translated():
            await self._client.set(Keys(session_id).control, END_REQUEST, ex=REQUEST_SECONDS)
        return True

    async def forget(self, session_id: str) -> int:
        """Delete every key of the session, also while somebody runs it; return how many there were. Cached packages
        that show what was said in it go, too.

        The mark that it leaves keeps every process that had loaded the session from restoring it.
        """
        keys = Keys(session_id)
        others = [key for key in keys.all() if key != keys.owner]
        field, before_mark = keys.forgotten_field, token_hex(MARK_CHARS // 2)
        args: list[bytes | int | str] = [TOMBSTONE, TOMBSTONE_MS, session_id, field, before_mark, MARK_BYTES, PACKAGE]
        named = [keys.owner, SESSIONS, SUMMARY_SEQS, FORGOTTEN, keys.packages]
        async with translated():
            return int(await self._forget(keys=[*named, *others], args=args))

    async def recordings(self, session_id: str) -> set[str]:
        """Return where the session was recorded: machines and files."""
        try:
            async with translated():
                places: Any = await cast("Any", self._client.smembers(Keys(session_id).recordings))
        except WrongKeyType:
            return set()
        return set(map(_decoded, places))

    async def mark(self, session_id: str) -> bytes | None:
        """Return the mark that was left when the session was last forgotten, if it was."""
        async with translated():
            marked: Any = self._client.hget(FORGOTTEN, Keys(session_id).forgotten_field)
            return cast("bytes | None", await marked)

    async def sweep(self, before: float, *, spared: str = "", keep_last: int = 0) -> list[str]:
        """Delete sessions last active before ``before`` (epoch seconds) in which nothing waits; return their ids.

        ``spared`` is the one that this process is about to run; ``keep_last`` messages, which summaries leave in the
        buffer, go with their session. One that cannot be swept is told, and left.
        """
        outlived = await self._by_activity("-inf", before, byscore=True)
        swept = []
        for name in filter(is_session_id, map(_decoded, outlived)):
            try:
                if name != spared and await self._sweep_one(name, before, keep_last):
                    swept.append(name)
            except StoreError as error:
                if isinstance(error, StoreUnavailable) and not isinstance(error, WrongKeyType):
                    raise
                log.warning("sweep.left", session_id=name, error=str(error))
        return swept

    async def _sweep_one(self, session_id: str, before: float, keep_last: int) -> bool:
        keys = Keys(session_id)
        waiting = [keys.input, keys.pending, keys.outbox, keys.memory_outbox]
        first = [keys.owner, SESSIONS, SUMMARY_SEQS, *waiting, keys.checkpoint]
        others = [key for key in keys.all() if key not in first]
        async with translated():
            return bool(await self._sweep(keys=[*first, *others], args=[session_id, before, keep_last]))


_ANSWERS: Final = 6
"""Answers of Redis about one session."""


def _counted(keys: Keys) -> tuple[str, str, str, str]:
    return keys.input, keys.pending, keys.outbox, keys.memory_outbox


def _decoded(raw: bytes) -> str:
    """Return a session's id as Redis holds it; of what is not text, one that no session has."""
    return raw.decode(errors="replace")


def _count_of(raw: bytes | None) -> int:
    """Return a counter; 0 for any other value."""
    return int(raw) if raw and len(raw) < 16 and raw.isdigit() else 0


def _registered(session_id: str, last_active: float | None, look: tuple[Any, ...]) -> RegisteredSession:
    keys = Keys(session_id)
    looked_at = zip((keys.owner, keys.checkpoint, *_counted(keys)), look, strict=True)
    faults = [f"{key}: {answer}" for key, answer in looked_at if isinstance(answer, ResponseError)]
    owner, checkpoint, *lengths = (None if isinstance(answer, ResponseError) else answer for answer in look)
    head, *dead = checkpoint or [None] * (1 + len(RECEIVERS))
    counters = HEAD.read(head).get("counters", {})
    waiting, pending, undelivered, unremembered = (int(length or 0) for length in lengths)
    return RegisteredSession(
        session_id=session_id,
        owner=OWNER.read(owner) or None,
        last_active=last_active,
        ended_at=counters.get("ended_at"),
        messages=counters.get("received_messages", 0),
        waiting=waiting,
        pending=pending,
        undelivered=undelivered,
        unremembered=unremembered,
        dead_letters=counters.get("dead_letters", 0),
        undeliverable={receiver: _count_of(count) for receiver, count in zip(RECEIVERS, dead, strict=True)},
        failing=counters.get("failing", {}),
        fault="; ".join(faults),
    )
