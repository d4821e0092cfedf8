"""A commit is described here by what it writes and what Redis answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from context_builder.session.conversation.changes import Changes
from context_builder.session.conversation.published_state import PublishedState
from context_builder.values import value


@value
class HeldRevision:
    """Tells which commit Redis holds: its ``revision`` and the writer it is ``by``, whose revisions only ascend.

    ``mark`` tells the times that the session was forgotten from each other, the last first; empty when it never was.
    """

    revision: int = 0
    by: bytes = b""
    mark: bytes = b""


@dataclass(frozen=True, slots=True)
class Lists:
    """Items of a session's lists as they are written there, oldest first; and fields of the message index, each before
    its value. Of pending messages that were struck, ``blanks`` has how each begins, and what takes its place.
    """

    pending: Sequence[bytes] = ()
    outbox: Sequence[bytes] = ()
    memory_outbox: Sequence[bytes] = ()
    dead: Sequence[bytes] = ()
    index: Sequence[bytes] = ()
    blanks: Sequence[bytes] = ()

    @property
    def size(self) -> int:
        """Return the size in bytes."""
        lists = (self.pending, self.outbox, self.memory_outbox, self.dead, self.index, self.blanks)
        return sum(len(item) for items in lists for item in items)

    def __add__(self, later: Self) -> Lists:
        return Lists(
            [*self.pending, *later.pending],
            [*self.outbox, *later.outbox],
            [*self.memory_outbox, *later.memory_outbox],
            [*self.dead, *later.dead],
            (*self.index, *later.index),
            (*self.blanks, *later.blanks),
        )


_NONE: Final = Lists()


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session as Redis has it.

    ``position`` is the one in its input. ``identities`` are those of the messages taken in during the last minute, and
    ``newest`` what was put last into lists: what a Redis that falls back right afterwards may no longer have.
    """

    revision: int
    fields: Mapping[str, bytes]
    pending: int
    position: bytes = b""
    identities: Sequence[bytes] = ()
    newest: Lists = field(default_factory=Lists)


@value
class Commit:
    """Everything one commit writes. Without ``head`` it only refreshes what expires; there is no ``state`` when
    it has not changed.

    ``acknowledged`` are the raw deliveries, oldest first, that the commit contains, and ``identities`` and ``dead``
    what became of them; the message ``index`` is added to, and older messages leave it than that with the id
    ``indexed_from``. ``silent_for`` is how many seconds ago somebody spoke.
    ``unidentified`` are the positions of new deliveries without identity. What is acknowledged leads from position
    ``begin`` to ``end``.

    After a fall-back, ``rewrite`` says that the changes are all of the checkpoint, in place of what Redis holds;
    ``replayed`` was put into the lists before, and ``pending`` messages are pending.
    """

    conversation_state: bytes
    silent_for: float
    state: PublishedState | None = None
    head: bytes = b""
    order: bytes = b""
    changes: Changes = field(default_factory=Changes)
    acknowledged: Sequence[bytes] = ()
    identities: Sequence[bytes] = ()
    dead: Sequence[bytes] = ()
    unidentified: Sequence[bytes] = ()
    index: Mapping[str, bytes] = field(default_factory=dict)
    indexed_from: int = 0
    begin: bytes = b""
    end: bytes = b""
    rewrite: bool = False
    replayed: Lists = field(default_factory=Lists)
    pending: int = 0

    @property
    def lists(self) -> Lists:
        """Return the items that the commit puts into lists for the first time; hardly ever any."""
        changes = self.changes
        if not (
            changes.pending_added
            or changes.outbox
            or changes.memory_outbox
            or changes.blanks
            or self.dead
            or self.index
        ):
            return _NONE
        return Lists(
            [entry.encode() for entry in changes.pending_added],
            [row.model_dump_json().encode() for row in changes.outbox],
            [part.encode() for part in changes.memory_outbox],
            self.dead,
            tuple(part for name, held in self.index.items() for part in (name.encode(), held)),
            tuple(part for blank in changes.blanks for part in blank),
        )


@value
class Committed:
    """Redis' answer: how many deliveries, and entries of both outboxes, are still waiting; a request to the owner;
    whether the state was there; and the position in the input.
    """

    waiting: int
    undelivered: int
    unremembered: int
    request: str
    state_present: bool
    position: bytes
