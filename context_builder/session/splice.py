"""The state as it changes: mostly what it was, with something new at its end.

With a full buffer the state is half a megabyte, and every message would send it whole to Redis and into
its append-only file. Only what comes after the part it shares with the state before needs to be sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

MARK_BYTES: Final = 64
"""The end of a state, which holds its revision and the moment of its publication, tells it from every other."""


@dataclass(frozen=True, slots=True)
class Splice:
    """``text`` to be written at ``at``; unless that is 0, into a value of ``length`` bytes that ends with ``mark``."""

    at: int
    text: bytes
    length: int = 0
    mark: bytes = b""

    @classmethod
    def between(cls, old: bytes, new: bytes) -> Self:
        """What makes ``new`` of ``old``: all of ``new`` when it is shorter, or has little in common."""
        if len(new) < len(old):
            return cls(0, new)
        at = common_start(old, new)
        return cls(at, new[at:], len(old), old[-MARK_BYTES:]) if at > len(new) // 2 else cls(0, new)


def common_start(old: bytes, new: bytes) -> int:
    """How many bytes both begin with; found by halving, so that almost all is compared by the machine."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
