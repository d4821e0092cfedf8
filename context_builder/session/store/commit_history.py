"""What the last seconds' commits gave to Redis, for a Redis that comes back without it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Final, NamedTuple

from context_builder.clock import Instant
from context_builder.session.store.commit import Commit, Lists, Snapshot
from context_builder.session.store.unidentified import Unidentified

SECONDS: Final = 3.0
"""With ``appendfsync everysec`` Redis loses a second at a power cut, two when the disk is busy; one to spare."""

BYTES: Final = 16 * 2**20
"""Room for what was put into lists, however large it is."""

IDENTITIES: Final = 2000
"""So many are remembered for longer than these seconds."""


class _Given(NamedTuple):
    """What a commit, at ``moment`` (monotonic), put into lists; all else is in the conversation."""

    revision: int
    moment: float
    lists: Lists


class CommitHistory:
    """Remembers commits for :data:`SECONDS` before the last one, however long ago that was."""

    def __init__(self) -> None:
        self.unidentified = Unidentified()
        self.position = b""
        self._given: deque[_Given] = deque()
        self._size = 0
        self._identities: dict[bytes, float] = {}

    def __contains__(self, identity: bytes) -> bool:
        return identity in self._identities

    @property
    def identities(self) -> list[bytes]:
        """Of the messages that were taken in lately, oldest first."""
        return [*self._identities]

    def begin(self, snapshot: Snapshot, now: Instant) -> None:
        """Continue from what another process left, should Redis fall back behind it."""
        self._add(_Given(snapshot.revision, now.monotonic, snapshot.newest), snapshot.identities)
        self.position = snapshot.position
        at_hand = len(snapshot.newest.pending) == snapshot.pending
        if at_hand:  # else Redis may lose a message that cannot be restored, and to hear it twice is better than never
            self.unidentified.restore(snapshot.fields.get("unidentified", b"[]"), now)

    def keep(self, revision: int, commit: Commit, now: Instant) -> None:
        """Redis said that it has this commit."""
        self._add(_Given(revision, now.monotonic, commit.lists), commit.identities)
        self.unidentified.take(commit.unidentified, now)

    def lists_after(self, revision: int) -> Lists:
        """What was put into lists since the commit with this revision, as far as it is remembered."""
        return reduce(add, (given.lists for given in self._given if given.revision > revision), Lists())

    def _add(self, given: _Given, identities: Sequence[bytes]) -> None:
        self._given.append(given)
        self._size += given.lists.size
        self._identities.update(dict.fromkeys(identities, given.moment))
        earliest = given.moment - SECONDS
        while self._given[0].moment < earliest or (self._size > BYTES and len(self._given) > 1):
            self._size -= self._given.popleft().lists.size
        while len(self._identities) > IDENTITIES and next(iter(self._identities.values())) < earliest:
            del self._identities[next(iter(self._identities))]
