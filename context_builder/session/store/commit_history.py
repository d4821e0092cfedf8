"""The commit history remembers the last commits, for a Redis that comes back without them.

:class:`UnidentifiedDeliveries` recognizes deliveries without identity that such a Redis gives again.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from functools import reduce
from hashlib import blake2b
from operator import add
from typing import Final, NamedTuple

import orjson

from context_builder.clock import Instant
from context_builder.session.store.commit import Commit, Lists, StoredSession
from context_builder.session.store.delivery import told_apart_by

SECONDS: Final = 3.0
"""With ``appendfsync everysec`` Redis loses a second at a power cut, two when the disk is busy; one to spare.

The checkpoint keeps the positions of as many seconds, for a process that continues the session.
"""

MOST_POSITIONS: Final = 2000
"""Positions of unidentified deliveries that are remembered at most."""

BYTES: Final = 16 * 2**20
"""Most bytes of list entries that are remembered, whatever the number of commits."""

IDENTITIES: Final = 2000
"""Most identities that are remembered for longer than :data:`SECONDS`."""

_DIGEST_BYTES: Final = 8


def position_after(position: bytes, delivery: bytes) -> bytes:
    """Return a session's position in its input after this delivery: a digest chained through ``position``.

    The first delivery comes after the empty position.
    """
    return blake2b(told_apart_by(delivery), digest_size=_DIGEST_BYTES, key=position).hexdigest().encode()


class UnidentifiedDeliveries:
    """Remembers positions in the input at which deliveries without identity were taken in.

    A message with neither number nor timestamp is like any other that says the same. But the input is acknowledged in
    its order, in one step with the checkpoint, which tells the position. A Redis that falls back returns to an earlier
    one, and what it then gives again comes at the positions where it came before; what is new, at positions that never
    were.
    """

    def __init__(self) -> None:
        self._taken: OrderedDict[bytes, float] = OrderedDict()

    def __contains__(self, position: bytes) -> bool:
        return position in self._taken

    def take(self, positions: Iterable[bytes], now: Instant) -> None:
        """Note the positions in the input at which deliveries without identity were taken in."""
        self._taken.update(dict.fromkeys(positions, now.monotonic))
        while len(self._taken) > MOST_POSITIONS:
            self._taken.popitem(last=False)

    def held(self, now: Instant) -> None:
        """Note that Redis has everything now, and forget what it took so long ago that it cannot lose it.

        So an equal message after a wiped Redis is new, unless it comes within seconds.
        """
        while self._taken and next(iter(self._taken.values())) < now.monotonic - SECONDS:
            self._taken.popitem(last=False)

    def fell_back(self, now: Instant) -> None:
        """Note that Redis lost some of it, and gives it again from now on."""
        self._taken = OrderedDict.fromkeys(self._taken, now.monotonic)

    def encode(self, more: Sequence[bytes]) -> bytes:
        """Return the newest positions, with those of ``more``, for the checkpoint."""
        newest = max(self._taken.values(), default=0.0)
        kept = [position for position, moment in self._taken.items() if moment >= newest - SECONDS]
        return orjson.dumps([position.decode() for position in (*kept, *more)][-MOST_POSITIONS:])

    def restore(self, encoded: bytes, now: Instant) -> None:
        """Continue from the checkpoint's positions."""
        self.take((position.encode() for position in orjson.loads(encoded)), now)


class _Given(NamedTuple):
    """What a commit at ``moment`` (monotonic) put into lists; everything else is in the conversation."""

    revision: int
    moment: float
    lists: Lists


class CommitHistory:
    """Remembers commits for :data:`SECONDS` before the last one, however long ago that was."""

    def __init__(self) -> None:
        self.unidentified = UnidentifiedDeliveries()
        self.position = b""
        self._given: deque[_Given] = deque()
        self._size = 0
        self._identities: OrderedDict[bytes, float] = OrderedDict()

    def __contains__(self, identity: bytes) -> bool:
        return identity in self._identities

    @property
    def identities(self) -> list[bytes]:
        """Return the identities of messages taken in lately, oldest first."""
        return [*self._identities]

    def begin(self, snapshot: StoredSession, now: Instant) -> None:
        """Continue from another process' commits, should Redis fall back behind them."""
        self._add(_Given(snapshot.revision, now.monotonic, snapshot.newest), snapshot.identities)
        self.position = snapshot.position
        at_hand = len(snapshot.newest.pending) == snapshot.pending
        if at_hand:  # else Redis may lose a message that cannot be restored, and to hear it twice is better than never
            self.unidentified.restore(snapshot.fields.get("unidentified", b"[]"), now)

    def keep(self, revision: int, commit: Commit, now: Instant) -> None:
        """Remember a commit that Redis has acknowledged."""
        self._add(_Given(revision, now.monotonic, commit.lists), commit.identities)
        self.unidentified.take(commit.unidentified, now)

    def lists_after(self, revision: int) -> Lists:
        """Return what was put into lists since the commit with this revision, as far as it is remembered."""
        return reduce(add, (given.lists for given in self._given if given.revision > revision), Lists())

    def _add(self, given: _Given, identities: Sequence[bytes]) -> None:
        self._given.append(given)
        self._size += given.lists.size
        self._identities.update(dict.fromkeys(identities, given.moment))
        earliest = given.moment - SECONDS
        while self._given[0].moment < earliest or (self._size > BYTES and len(self._given) > 1):
            self._size -= self._given.popleft().lists.size
        while len(self._identities) > IDENTITIES and next(iter(self._identities.values())) < earliest:
            self._identities.popitem(last=False)
