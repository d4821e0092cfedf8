"""A session as a process finds it in Redis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True, slots=True)
class Held:
    """Which commit Redis holds: its ``revision`` and the writer it is ``by``, whose revisions only ascend.

    ``mark`` tells the times that the session was forgotten from each other, the last first; empty when it never was.
    """

    revision: int = 0
    by: bytes = b""
    mark: bytes = b""


@dataclass(frozen=True, slots=True)
class Lists:
    """Items of a session's lists as they are written there, oldest first."""

    pending: Sequence[bytes] = ()
    outbox: Sequence[bytes] = ()
    memory_outbox: Sequence[bytes] = ()
    dead: Sequence[bytes] = ()

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(sum(map(len, items)) for items in (self.pending, self.outbox, self.memory_outbox, self.dead))

    def __add__(self, later: Self) -> Lists:
        return Lists(
            [*self.pending, *later.pending],
            [*self.outbox, *later.outbox],
            [*self.memory_outbox, *later.memory_outbox],
            [*self.dead, *later.dead],
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A session as Redis holds it.

    ``identities`` are those of the messages taken in during the last minute, and ``newest`` what was put last into
    lists: what a Redis that falls back right afterwards may no longer have.
    """

    revision: int
    fields: Mapping[str, bytes]
    pending: int
    identities: Sequence[bytes] = ()
    newest: Lists = field(default_factory=Lists)
