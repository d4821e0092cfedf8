"""Dead letters are undeliverable messages and entries, kept with the reason, to be inspected and requeued.

These are deliveries that could not become messages, and entries of an outbox that their receiver refuses for good.
"""

from __future__ import annotations

import asyncio
import base64
import zlib
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

import orjson
from redis.asyncio import Redis

from context_builder.clock import Instant
from context_builder.errors import EntryUnreadable, MessageError, StoreError
from context_builder.session.conversation.memory_batch import MemoryBatch, unpacked
from context_builder.session.keys import RECEIVERS, Keys, Receiver, dead_bytes_field
from context_builder.session.messages.revision import read_reference
from context_builder.session.store.deliveries import WHOLE_BYTES, CutDelivery
from context_builder.session.store.scripts import script
from context_builder.session.stored import LETTER, SUMMARY, reading
from context_builder.storage.redis_availability import translated

KEPT_BYTES: Final = WHOLE_BYTES
"""Most bytes that a dead letter keeps: of a larger delivery, the beginning."""


FOREIGN: Final = "no dead letter: another program wrote it"

Origin = Literal["input"] | Receiver
"""Where dead letters come from, and are put back: the input, or the outbox for a receiver."""

ORIGINS: Final[tuple[Origin, ...]] = ("input", *RECEIVERS)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One delivery or entry as it came; ``time`` is epoch seconds.

    ``raw`` may be anything and is all of it, unless ``size`` (bytes) exceeds :data:`KEPT_BYTES`.
    """

    reason: str
    time: float
    raw: bytes
    size: int

    @classmethod
    def of(cls, delivery: bytes, reason: str, now: Instant) -> DeadLetter:
        size = delivery.size if isinstance(delivery, CutDelivery) else len(delivery)
        return cls(reason, now.wall, delivery[:KEPT_BYTES], size)

    @property
    def is_whole(self) -> bool:
        return len(self.raw) == self.size

    def content(self, origin: Origin) -> bytes:
        """Return its content legibly: entries for the memory are compressed."""
        with suppress(zlib.error):
            return unpacked(self.raw) if origin == "memory" else self.raw
        return self.raw

    def begins(self, origin: Origin, chars: int) -> str:
        """Return the beginning of its text where it can be read, else of its content."""
        content = self.content(origin)
        with suppress(ValueError, LookupError, TypeError):
            if origin == "archive":
                return str(orjson.loads(content)["summary_text"])[:chars]
            if origin == "memory":
                return str(orjson.loads(content)["memories"][0][1])[:chars]  # its text
        return content[: 4 * chars].decode("utf-8", "replace")[:chars]

    def as_json(self) -> dict[str, Any]:
        """Return the letter as it is stored, with its bytes as base64, because JSON cannot hold them."""
        raw = base64.b64encode(self.raw).decode("ascii")
        return {"reason": self.reason, "time": self.time, "size": self.size, "raw": raw}

    def encode(self) -> bytes:
        return orjson.dumps(self.as_json())

    @classmethod
    def decode(cls, encoded: bytes) -> DeadLetter:
        """Return the letter; for what another program left in its place, one that says so and cannot be put back."""
        try:
            fields = LETTER.whole(encoded)
            raw = base64.b64decode(fields["raw"])
            datetime.fromtimestamp(fields["time"], UTC)  # raises where it cannot be shown
            return cls(fields["reason"], fields["time"], raw, fields["size"])
        except (ValueError, OverflowError, OSError):
            return cls(FOREIGN, 0.0, b"", max(1, len(encoded)))


def without_words(encoded: bytes, ids: Container[int], numbers: Container[int]) -> bytes:
    """Return a dead letter of the input, without its content if that was to correct one of these messages, or may have
    been: of a large one, what it corrects may be in what was cut off.

    ``numbers`` are those of the messages, and the ids of those that have none: a correction may name either.
    """
    letter = DeadLetter.decode(encoded)
    if letter.is_whole:
        with suppress(orjson.JSONDecodeError, AttributeError, MessageError):
            about = read_reference(orjson.loads(letter.raw).get("corrects"), "corrects")
            if about.id in ids if about.number is None else about.number in numbers:
                return replace(letter, raw=b"", size=0).encode()
        return encoded
    return replace(letter, raw=b"", size=0).encode()


class DeadLetters:
    """Lists a session's dead letters from ``origin``, numbered from 1, oldest first, so that new ones leave the numbers
    as they are.

    Every method raises :class:`~context_builder.errors.StoreUnavailable` when Redis cannot be reached.
    """

    def __init__(self, client: Redis, session_id: str, origin: Origin = "input") -> None:
        self._client: Any = client  # redis-py types its commands as sync or async at once
        self._keys = keys = Keys(session_id)
        self._origin = origin
        self._key = keys.dead if origin == "input" else keys.dead_letters_of(origin)
        self._requeue = script(client, "requeue")

    async def all(self) -> list[DeadLetter]:
        """Return all letters that are kept, oldest first."""
        async with translated():
            newest_first: list[bytes] = await self._client.lrange(self._key, 0, -1)
        return [DeadLetter.decode(encoded) for encoded in reversed(newest_first)]

    async def get(self, number: int) -> DeadLetter:
        """Return the letter with this number. Raises :class:`StoreError` when there is none."""
        async with translated():
            encoded = await self._client.lindex(self._key, -number) if number > 0 else None
        if encoded is None:
            what = "dead letter" if self._origin == "input" else f"dead letter for the {self._origin}"
            raise StoreError(f"session {self._keys.session_id} has no {what} {number}")
        return DeadLetter.decode(encoded)

    async def requeue(self, letter: DeadLetter) -> bool:
        """Move the letter back to where it came from, as the newest there, in one step; return false when somebody else
        just did.

        Raises :class:`StoreError` for one that is not whole.
        """
        if not letter.is_whole:
            kept = f"only {len(letter.raw)} of its {letter.size} bytes were kept"
            raise StoreError(f"a dead letter cannot be put back: {kept}")
        if self._origin == "input":
            return await self._put_back(letter, letter.raw, self._keys.input, "LPUSH", "dead_bytes") == 1
        to, bytes_field = self._keys.outbox_of(self._origin), dead_bytes_field(self._origin)
        while True:
            revision, entry = await self._at_present(letter.raw)
            moved = await self._put_back(letter, entry, to, "RPUSH", bytes_field, revision)
            if moved >= 0:
                return moved == 1

    async def _put_back(
        self, letter: DeadLetter, raw: bytes, to: str, push: str, bytes_field: str, revision: bytes = b""
    ) -> int:
        keys = [self._key, to, self._keys.checkpoint]
        async with translated():
            return int(await self._requeue(keys=keys, args=[letter.encode(), raw, push, bytes_field, revision]))

    async def _at_present(self, entry: bytes) -> tuple[bytes, bytes]:
        """Return the session's revision, and the entry as it holds at that: for the memory, without points that were
        replaced since, and as corrected by what waits and will be delivered first.
        """
        async with translated():
            revision, summary = await self._client.hmget(self._keys.checkpoint, ["revision", "summary"])
            waiting = await self._client.lrange(self._keys.memory_outbox, 0, -1) if self._origin == "memory" else ()
        if self._origin == "memory":
            with reading(self._keys.session_id, self._keys.checkpoint, "summary"):
                replaced = SUMMARY.whole(summary)["replaced"] if summary else ()
            entry = await asyncio.to_thread(_followed_by, entry, waiting, replaced)
        return revision or b"0", entry


def _followed_by(entry: bytes, waiting: Iterable[bytes], replaced: Sequence[tuple[int, float]]) -> bytes:
    """Return an entry for the memory as it holds behind others, with the points ``replaced`` gone."""
    with suppress(EntryUnreadable):
        batch = MemoryBatch.decode(entry).at_present(replaced)
        for one in waiting:
            with suppress(EntryUnreadable):
                batch = batch.followed_by(MemoryBatch.decode(one))
        return batch.encode()
    return entry
