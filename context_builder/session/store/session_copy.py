"""A session is copied out of Redis as it is at one moment, and put back into one that does not have it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Final, Literal

from redis.asyncio import Redis

from context_builder.session.keys import FENCE, FORGOTTEN, SESSIONS, SUMMARY_SEQS, Keys
from context_builder.session.store.registry import MARK_BYTES, MARK_CHARS
from context_builder.session.store.scripts import script
from context_builder.session.stored import count_of
from context_builder.storage.redis_availability import translated

KeyType = Literal["string", "list", "set", "hash"]

KEPT: Final[Mapping[str, KeyType]] = {
    "input": "list",
    "state": "string",
    "checkpoint": "hash",
    "pending": "list",
    "seen": "set",
    "message_index": "hash",
    "recent": "list",
    "outbox": "list",
    "memory_outbox": "list",
    "dead": "list",
    "archive_dead": "list",
    "memory_dead": "list",
}
"""Keys of a session that are copied, by their names in :class:`Keys`. The lease, requests to its holder, the silence
clock and cached packages are of the moment."""

COPY_MS: Final = 3_600_000
AT_ONCE: Final = 500
"""Items that are read or written at once."""

TOKENS_APART: Final = 1_000_000
"""Fencing tokens that a restore skips beyond the backup's counter, so that no process was given one of them since."""

ANSWER: Final = 60.0
"""Seconds that Redis may take to copy a large session."""


@dataclass(frozen=True, slots=True)
class SessionHeader:
    """What the keys of all sessions know of one, and for how many milliseconds each of :data:`KEPT` will live."""

    session_id: str
    last_active: float | None
    summary_seq: int | None
    mark: bytes
    lives: tuple[int, ...]


class SessionSnapshot:
    """The copies of a session; ``parts`` reads them, as often as they are asked for while they live.

    ``left_out`` are the names of keys that somebody made another type, and which: they are not copied. It
    ``has_other_count`` where the count of its summaries is none.
    """

    def __init__(
        self,
        client: Redis,
        header: SessionHeader,
        copies: Sequence[str],
        left_out: Mapping[str, str],
        *,
        has_other_count: bool,
    ) -> None:
        self._client = client
        self.header = header
        self.left_out = left_out
        self.has_other_count = has_other_count
        self._copies = copies

    async def parts(self) -> AsyncIterator[tuple[str, list[bytes]]]:
        """Yield names of keys with some of their values: of a hash, fields and values by turns."""
        for (name, kind), copy in zip(KEPT.items(), self._copies, strict=True):
            async for values in self._values(copy, kind):
                yield name, values

    async def _values(self, key: str, kind: KeyType) -> AsyncIterator[list[bytes]]:
        client: Any = self._client
        if kind == "string":
            async with translated(ANSWER):
                value = await client.get(key)
            if value is not None:
                yield [value]
        elif kind == "list":
            for first in itertools.count(0, AT_ONCE):
                async with translated(ANSWER):
                    items = await client.lrange(key, first, first + AT_ONCE - 1)
                if not items:
                    return
                yield items
        else:
            cursor, scan = 0, client.sscan if kind == "set" else client.hscan
            while True:
                async with translated(ANSWER):
                    cursor, found = await scan(key, cursor, count=AT_ONCE)
                if found:
                    yield [*found] if kind == "set" else [*itertools.chain.from_iterable(found.items())]
                if not cursor:
                    return

    async def drop(self) -> None:
        async with translated():
            await self._client.unlink(*self._copies)


async def take_snapshot(client: Redis, session_id: str) -> SessionSnapshot:
    """Return the session as it is now. Redis holds it twice until it is dropped."""
    keys = Keys(session_id)
    kept = [getattr(keys, name) for name in KEPT]
    copies = _copies()
    async with translated(ANSWER):
        active, seq, mark, lives, others = await script(client, "snapshot")(
            keys=[SESSIONS, SUMMARY_SEQS, FORGOTTEN, *kept, *copies],
            args=[session_id, keys.forgotten_field, COPY_MS, *KEPT.values()],
        )
    count = _count_or_none(seq)
    header = SessionHeader(session_id, float(active) if active else None, count, mark or b"", tuple(lives))
    left_out = {name: other.decode() for name, other in zip(KEPT, others, strict=True) if other}
    return SessionSnapshot(client, header, copies, left_out, has_other_count=bool(seq) and count is None)


class SessionRestore:
    """Puts one session back: ``write`` its values beside its place, then ``finish`` puts all in place in one step."""

    def __init__(self, client: Redis, header: SessionHeader) -> None:
        self._client = client
        self._header = header
        self._copies = dict(zip(KEPT, _copies(), strict=True))

    async def write(self, name: str, values: Sequence[bytes]) -> None:
        client: Any = self._client
        key, kind = self._copies[name], KEPT[name]
        for some in _slices(values):
            async with translated(ANSWER), client.pipeline(transaction=True) as pipe:
                match kind:
                    case "string":
                        pipe.set(key, some[0])
                    case "list":
                        pipe.rpush(key, *some)
                    case "set":
                        pipe.sadd(key, *some)
                    case "hash":
                        pipe.hset(key, mapping=dict(zip(some[::2], some[1::2], strict=True)))
                pipe.pexpire(key, COPY_MS)
                await pipe.execute()

    async def finish(self) -> bool:
        """Put the session in its place; false when there is one."""
        header, keys = self._header, Keys(self._header.session_id)
        mark = b" ".join(filter(None, (token_hex(MARK_CHARS // 2).encode(), header.mark)))[:MARK_BYTES]
        places = [getattr(keys, name) for name in KEPT]
        active = "" if header.last_active is None else repr(header.last_active)
        seq = "" if header.summary_seq is None else header.summary_seq
        async with translated(ANSWER):
            done = await script(self._client, "restore")(
                keys=[keys.owner, SESSIONS, SUMMARY_SEQS, FORGOTTEN, *places, *self._copies.values()],
                args=[keys.session_id, active, seq, keys.forgotten_field, mark, *header.lives],
            )
        return bool(done)

    async def drop(self) -> None:
        async with translated():
            await self._client.unlink(*self._copies.values())


@dataclass(frozen=True, slots=True)
class SharedCounts:
    """What a Redis keeps of sessions that are gone: the summaries they made, marks of forgotten ones, and the counter
    of fencing tokens."""

    fence: int
    summary_seqs: Mapping[bytes, bytes]
    marks: Mapping[bytes, bytes]


async def read_shared(client: Redis) -> SharedCounts:
    """Return the counts of all sessions of this Redis."""
    async with translated(ANSWER), client.pipeline(transaction=True) as pipe:
        pipe.hget(FENCE, "token")
        pipe.hgetall(SUMMARY_SEQS)
        pipe.hgetall(FORGOTTEN)
        fence, seqs, marks = await pipe.execute()
    counted = {name: seq for name, seq in seqs.items() if _count_or_none(seq) is not None}
    return SharedCounts(_count_or_none(fence) or 0, counted, marks)


def _count_or_none(held: bytes | None) -> int | None:
    """Return a count that Redis holds; None where there is none."""
    with suppress(ValueError):
        return count_of(held or b"")
    return None


async def restore_shared(client: Redis, counts: SharedCounts) -> None:
    """Add the counts to those of this Redis. The counter of fencing tokens only ever grows."""
    any_client: Any = client
    async with translated(ANSWER):
        present = int(await any_client.hget(FENCE, "token") or 0)
        await any_client.hincrby(FENCE, "token", max(0, counts.fence - present) + TOKENS_APART)
    for key, values in ((SUMMARY_SEQS, counts.summary_seqs), (FORGOTTEN, counts.marks)):
        for some in _slices([*values.items()]):
            async with translated(ANSWER), client.pipeline(transaction=False) as pipe:
                for field, value in some:
                    pipe.hsetnx(key, field, value)
                await pipe.execute()


def _copies() -> list[str]:
    token = token_hex(8)
    return [f"context_builder:copy:{token}:{number}" for number in range(len(KEPT))]


def _slices(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (values[first : first + AT_ONCE] for first in range(0, len(values), AT_ONCE))
