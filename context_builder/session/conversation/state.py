"""The published state, in pieces that can be compared without reading them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class State:
    """JSON text: what comes ``before`` the buffer's entries, the ``entries``, joined by commas, what comes ``after``.

    An entry that did not change is the same object in the next state, so comparing two states compares pointers.
    """

    before: bytes
    entries: Sequence[bytes]
    after: bytes

    def __bytes__(self) -> bytes:
        return b"".join((self.before, b",".join(self.entries), self.after))

    @cached_property
    def length(self) -> int:
        """In bytes."""
        commas = max(0, len(self.entries) - 1)
        return len(self.before) + sum(map(len, self.entries)) + commas + len(self.after)
