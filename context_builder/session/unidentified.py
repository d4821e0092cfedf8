"""Deliveries without identity, recognized when a Redis that fell back gives them again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

import orjson

from context_builder.clock import Instant

REMEMBERED: Final = 2000
"""So many are remembered at most."""

SECONDS: Final = 3.0
"""The checkpoint keeps those of so many seconds before the newest, for a process that continues the session."""

_DIGEST_BYTES: Final = 8


def digest_of(delivery: bytes) -> bytes:
    return blake2b(delivery, digest_size=_DIGEST_BYTES).hexdigest().encode()


class Unidentified:
    """Digests of the deliveries without identity that were taken in, in their order; ``taken`` counts them all.

    A message with neither number nor timestamp is like any other that says the same. But the input is acknowledged in
    its order, in one step with the checkpoint, which counts how many of these deliveries were acknowledged. So when
    Redis falls back, the oldest in its input are those taken in since, in the same order and as far as they had been
    pushed by then.
    """

    def __init__(self) -> None:
        self.taken = 0
        self._digests: deque[tuple[bytes, float]] = deque(maxlen=REMEMBERED)

    def expected(self, acknowledged: int) -> deque[bytes]:
        """Those that may come again from a Redis that has acknowledged so many, oldest first.

        Empty when it has lost more than is remembered: they are then taken for new ones.
        """
        count = self.taken - acknowledged
        if not 0 < count <= len(self._digests):
            return deque()
        return deque(digest for digest, _ in [*self._digests][-count:])

    def take(self, digests: Iterable[bytes], now: Instant) -> None:
        """These were taken in now."""
        for digest in digests:
            self._digests.append((digest, now.monotonic))
            self.taken += 1

    def encode(self, more: Sequence[bytes]) -> bytes:
        """For the checkpoint: how many there are with those ``more`` that it takes in, and the newest of them."""
        newest = self._digests[-1][1] if self._digests else 0.0
        kept = [digest for digest, moment in self._digests if moment >= newest - SECONDS]
        digests = [digest.decode() for digest in (*kept, *more)][-REMEMBERED:]
        return orjson.dumps({"taken": self.taken + len(more), "digests": digests})

    def restore(self, encoded: bytes, now: Instant, *, at_hand: bool) -> None:
        """Continue from what the checkpoint has.

        Unless all their messages are ``at_hand``, none is expected again: a Redis that falls back behind this moment
        may have lost the message itself, and to hear it twice is better than not at all.
        """
        fields = orjson.loads(encoded)
        if at_hand:
            self.take((digest.encode() for digest in fields["digests"]), now)
        self.taken = fields["taken"]
