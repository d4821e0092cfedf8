"""Deliveries that could not become messages: kept with the reason, to be looked at and put back into the input."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Final

import orjson
from redis.asyncio import Redis

from context_builder.clock import Instant
from context_builder.errors import StoreError
from context_builder.session.availability import translated
from context_builder.session.keys import Keys
from context_builder.session.store import script

KEPT_BYTES: Final = 4 * 1024 * 1024
"""Of a larger delivery a dead letter keeps the beginning: Redis holds values of 512 MiB at most, and base64 grows."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One delivery as it came; ``time`` is epoch seconds.

    ``raw`` may be anything and is all of it, unless ``size`` (bytes) exceeds :data:`KEPT_BYTES`.
    """

    reason: str
    time: float
    raw: bytes
    size: int

    @classmethod
    def of(cls, delivery: bytes, reason: str, now: Instant) -> DeadLetter:
        return cls(reason, now.wall, delivery[:KEPT_BYTES], len(delivery))

    @property
    def is_whole(self) -> bool:
        return len(self.raw) == self.size

    def as_json(self) -> dict[str, Any]:
        """What is stored; the bytes as base64, because JSON cannot hold them."""
        raw = base64.b64encode(self.raw).decode("ascii")
        return {"reason": self.reason, "time": self.time, "size": self.size, "raw": raw}

    def encode(self) -> bytes:
        return orjson.dumps(self.as_json())

    @classmethod
    def decode(cls, encoded: bytes) -> DeadLetter:
        fields = orjson.loads(encoded)
        raw = base64.b64decode(fields["raw"])
        return cls(fields["reason"], fields["time"], raw, fields.get("size", len(raw)))


class DeadLetters:
    """A session's dead letters, numbered from 1, oldest first, so that new ones leave the numbers as they are.

    Every method raises :class:`~context_builder.errors.StoreUnavailable` when Redis cannot be reached.
    """

    def __init__(self, client: Redis, session_id: str) -> None:
        self._client = client
        self._keys = Keys(session_id)
        self._requeue = script(client, "requeue")

    async def all(self) -> list[DeadLetter]:
        """All that are kept, oldest first."""
        async with translated():
            newest_first: Any = await self._client.lrange(self._keys.dead, 0, -1)
        return [DeadLetter.decode(encoded) for encoded in reversed(newest_first)]

    async def get(self, number: int) -> DeadLetter:
        """The letter with this number. Raises :class:`StoreError` when there is none."""
        async with translated():
            encoded: Any = await self._client.lindex(self._keys.dead, -number) if number > 0 else None
        if encoded is None:
            raise StoreError(f"session {self._keys.session_id} has no dead letter {number}")
        return DeadLetter.decode(encoded)

    async def requeue(self, letter: DeadLetter) -> bool:
        """Move the delivery back into the input, as its newest, in one step; false when somebody else just did.

        Raises :class:`StoreError` for one that is not whole.
        """
        if not letter.is_whole:
            kept = f"only {len(letter.raw)} of its {letter.size} bytes were kept"
            raise StoreError(f"a dead letter cannot be put back: {kept}")
        keys = [self._keys.dead, self._keys.input, self._keys.checkpoint]
        async with translated():
            return bool(await self._requeue(keys=keys, args=[letter.encode(), letter.raw]))
