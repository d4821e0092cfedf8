"""The state as it changes: mostly what it was, with something new at its end.

With a full buffer the state is half a megabyte, and every message would send it whole to Redis and into
its append-only file. Only what comes after the part it shares with the state before needs to be sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from context_builder.session.state import State

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
    def between(cls, old: State | None, new: State) -> Self:
        """What makes ``new`` of ``old``: all of ``new`` when it is shorter, or has little in common."""
        if old is None or old.before != new.before or new.length < old.length:
            return cls(0, bytes(new))
        text = new.rest(common_start(old.entries, new.entries))
        if len(text) >= new.length // 2:
            return cls(0, bytes(new))
        return cls(new.length - len(text), text, old.length, old.after[-MARK_BYTES:])


def common_start(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    """How many items both begin with; found by halving, so that almost all is compared by the machine."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
