"""Deliveries without identity, recognized when a Redis that fell back gives them again."""

from __future__ import annotations

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


def position_after(position: bytes, delivery: bytes) -> bytes:
    """Where in its input a session is after this delivery: a digest of it and, through ``position``, of all before it.

    The first delivery comes after the empty position.
    """
    return blake2b(delivery, digest_size=_DIGEST_BYTES, key=position).hexdigest().encode()


class Unidentified:
    """Positions in the input at which deliveries without identity were taken in.

    A message with neither number nor timestamp is like any other that says the same. But the input is acknowledged in
    its order, in one step with the checkpoint, which tells the position. A Redis that falls back returns to an earlier
    one, and what it then gives again comes at the positions where it came before; what is new, at positions that never
    were.
    """

    def __init__(self) -> None:
        self._taken: dict[bytes, float] = {}

    def __contains__(self, position: bytes) -> bool:
        return position in self._taken

    def take(self, positions: Iterable[bytes], now: Instant) -> None:
        """Deliveries without identity were taken in at these positions now."""
        self._taken.update(dict.fromkeys(positions, now.monotonic))
        while len(self._taken) > REMEMBERED:
            del self._taken[next(iter(self._taken))]

    def encode(self, more: Sequence[bytes]) -> bytes:
        """The newest, with those ``more`` that it takes in, for the checkpoint."""
        newest = max(self._taken.values(), default=0.0)
        kept = [position for position, moment in self._taken.items() if moment >= newest - SECONDS]
        return orjson.dumps([position.decode() for position in (*kept, *more)][-REMEMBERED:])

    def restore(self, encoded: bytes, now: Instant) -> None:
        """Continue from what the checkpoint has."""
        self.take((position.encode() for position in orjson.loads(encoded)), now)
