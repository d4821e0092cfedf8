"""What one commit writes, and what Redis answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from context_builder.session.changes import Changes
from context_builder.session.state import State


@dataclass(frozen=True, slots=True)
class Commit:
    """Everything one commit writes. Without ``head`` it only refreshes what expires; there is no ``state`` when
    it has not changed.

    ``acknowledged`` are the raw deliveries, oldest first, that the commit contains, and ``identities`` and ``dead``
    what became of them. ``active_at`` is the last message's time in epoch seconds. ``anew``: the changes are all
    of the checkpoint, in place of what Redis holds.
    """

    conversation_state: bytes
    active_at: float
    state: State | None = None
    head: bytes = b""
    order: bytes = b""
    changes: Changes = field(default_factory=Changes)
    acknowledged: Sequence[bytes] = ()
    identities: Sequence[bytes] = ()
    dead: Sequence[bytes] = ()
    anew: bool = False


@dataclass(frozen=True, slots=True)
class Committed:
    """What Redis said: deliveries, and entries of both outboxes, still waiting; a request to the owner; whether the
    state was there."""

    waiting: int
    undelivered: int
    unremembered: int
    request: str
    published: bool
    buried: int = 0
