"""What the last seconds' commits gave to Redis, for a Redis that comes back without it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from context_builder.archive.archive import SummaryRow
from context_builder.clock import Instant
from context_builder.session.changes import Changes
from context_builder.session.commit import Commit
from context_builder.session.entry import Entry
from context_builder.session.remembrance import Remembrance
from context_builder.session.unidentified import Unidentified

SECONDS: Final = 3.0
"""With ``appendfsync everysec`` Redis loses a second at a power cut, two when the disk is busy; one to spare."""

PENDING_BYTES: Final = 16 * 2**20
"""Room for pending messages among it, however large they are."""

IDENTITIES: Final = 2000
"""So many are remembered for longer than these seconds."""


@dataclass(frozen=True, slots=True)
class _Given:
    """What a commit, at ``moment`` (monotonic), added to lists and took from them; all else is in the conversation."""

    revision: int
    moment: float
    pending_added: Sequence[bytes]
    pending_trimmed: int
    outbox: Sequence[SummaryRow]
    memory_outbox: Sequence[Remembrance]

    @property
    def size(self) -> int:
        return sum(map(len, self.pending_added))


class Recent:
    """Remembers commits for :data:`SECONDS` before the last one, however long ago that was."""

    def __init__(self) -> None:
        self.unidentified = Unidentified()
        self._given: deque[_Given] = deque()
        self._size = 0
        self._identities: dict[bytes, float] = {}

    def __contains__(self, identity: bytes) -> bool:
        return identity in self._identities

    @property
    def identities(self) -> list[bytes]:
        """Of the messages that were taken in lately, oldest first."""
        return [*self._identities]

    def recognize(self, entries: Iterable[Entry], now: Instant) -> None:
        """Remember the identities of messages that another process took in, should Redis fall back behind them."""
        self._identities.update((entry.identity, now.monotonic) for entry in entries)

    def keep(self, revision: int, commit: Commit, now: Instant) -> None:
        """Redis said that it has this commit."""
        changes = commit.changes
        added = changes.encoded_pending()
        given = _Given(revision, now.monotonic, added, changes.pending_trimmed, changes.outbox, changes.memory_outbox)
        self._given.append(given)
        self._size += given.size
        self._identities.update(dict.fromkeys(commit.identities, now.monotonic))
        self.unidentified.take(commit.unidentified, now)
        self._forget_older(now.monotonic - SECONDS)

    def give_again(self, changes: Changes, held: int, pending: int) -> None:
        """Put before ``changes`` what Redis, fallen back to revision ``held``, no longer has.

        When it lost more than is remembered, nobody knows what is in its pending list, where ``pending`` messages
        should be: then nothing is taken out, because to summarize a message twice is better than to lose it.
        """
        lost = [given for given in self._given if given.revision > held]
        changes.pending_again = [entry for given in lost for entry in given.pending_added]
        changes.pending_trimmed += sum(given.pending_trimmed for given in lost)
        changes.outbox = [*(row for given in lost for row in given.outbox), *changes.outbox]
        changes.memory_outbox = [*(part for given in lost for part in given.memory_outbox), *changes.memory_outbox]
        if not self._given or self._given[0].revision > held + 1:
            too_many = len(changes.encoded_pending()) - pending
            del changes.pending_again[: max(0, too_many)]
            changes.pending_trimmed = 0

    def _forget_older(self, moment: float) -> None:
        while self._given[0].moment < moment or (self._size > PENDING_BYTES and len(self._given) > 1):
            self._size -= self._given.popleft().size
        while len(self._identities) > IDENTITIES and next(iter(self._identities.values())) < moment:
            del self._identities[next(iter(self._identities))]
