"""Commits are remembered here for a Redis that comes back without the last ones, and whose may be written over.

:class:`Lineage` is the part of a session's history that a process knows. The commit history remembers the last commits;
:class:`UnidentifiedDeliveries` recognizes deliveries without identity that such a Redis gives again.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Final, NamedTuple, Self

import orjson

from context_builder.clock import Instant
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


ANCESTORS: Final = 32
"""Most earlier writers that a lineage names. What Redis holds of an earlier one counts as a stranger's."""


@value
class Lineage:
    """Remembers the commits that this process, the ``writer``, made or continued from.

    Redis may fall back to an earlier commit: its last second is lost, a replica promoted, a copy restored. A process
    may then write again all that it remembers, but only over what it knows: nothing at all, its own commits, and those
    of its ``ancestors``, each up to the last revision of theirs that it continued from. What anybody else wrote it does
    not remember; and a session that was forgotten since it was loaded must not come back.

    ``latest`` is the newest commit known to have been in Redis, ``base`` the one that the next commit builds on.
    """

    writer: bytes
    latest: HeldRevision = field(default_factory=HeldRevision)
    base: HeldRevision = field(default_factory=HeldRevision)
    ancestors: Mapping[bytes, int] = field(default_factory=dict)

    def loaded(self, held: HeldRevision, ancestors: bytes | None) -> Self:
        """Continue from what Redis holds, whose checkpoint names these ``ancestors``."""
        # Who wrote last is an ancestor, too, up to the revision that is continued from. What that process may still
        # write afterwards has a higher one, and is a stranger's.
        named = {str(writer).encode(): int(last) for writer, last in orjson.loads(ancestors or b"[]")}
        if held.by:
            named.pop(held.by, None)  # so that it becomes the newest
            named[held.by] = held.revision
        newest = dict([*named.items()][-ANCESTORS:])
        return replace(self, latest=held, base=held, ancestors=newest)

    def committed(self, revision: int) -> Self:
        """Note that Redis holds this process's commit ``revision``."""
        held = HeldRevision(revision, self.writer, self.latest.mark)
        return replace(self, latest=held, base=held)

    def rebased(self, held: HeldRevision) -> Self:
        """Let the next commit build on what Redis fell back to."""
        return replace(self, base=held)

    def knows(self, held: HeldRevision) -> bool:
        """Return whether only this process and those it continued from had a part in what Redis holds."""
        if self.was_forgotten(held):
            return False
        return held.by in (b"", self.writer) or held.revision <= self.ancestors.get(held.by, -1)

    def was_forgotten(self, held: HeldRevision) -> bool:
        """Return whether the session was forgotten since it was loaded; a Redis that fell back has an earlier mark."""
        # Only the newest mark counts: an earlier one that is there again shows a Redis that fell back, not a deletion.
        return not {*held.mark.split()[:1]} <= {*self.latest.mark.split()}

    def is_behind(self, held: HeldRevision) -> bool:
        """Return whether Redis, which holds what this process :meth:`knows`, has lost commits that it had."""
        if held.by == self.writer:
            return self.latest.by == self.writer and held.revision < self.latest.revision
        return held != self.latest

    def encode(self) -> bytes:
        """Return the ancestors, oldest first, as the checkpoint names them."""
        return orjson.dumps([[writer.decode(), last] for writer, last in self.ancestors.items()])


SECONDS: Final = 3.0
"""Time that Redis may lose at a power cut: one second with ``appendfsync everysec``, two on a busy disk, one to spare.

The checkpoint keeps the positions of as many seconds, for a process that continues the session.
"""

MOST_POSITIONS: Final = 2000
"""Most positions of unidentified deliveries that are remembered."""

BYTES: Final = 16 * 2**20
"""Most bytes of list entries that are remembered, whatever the number of commits."""

IDENTITIES: Final = 2000
"""Most identities that are remembered for longer than :data:`SECONDS`."""


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


class _ListEntries(NamedTuple):
    """What a commit at ``moment`` (monotonic) put into lists; everything else is in the conversation."""

    revision: int
    moment: float
    lists: Lists


class CommitHistory:
    """Remembers commits for :data:`SECONDS` before the last one, however long ago that was.

    The committer tells it of each commit, and the inbox asks it which deliveries were taken in. ``position`` is the one
    in the input up to which the last commit acknowledged deliveries.
    """

    def __init__(self) -> None:
        self.unidentified = UnidentifiedDeliveries()
        self._position = b""
        self._given: deque[_ListEntries] = deque()
        self._size = 0
        self._identities: OrderedDict[bytes, float] = OrderedDict()

    def __contains__(self, identity: bytes) -> bool:
        return identity in self._identities

    @property
    def position(self) -> bytes:
        return self._position

    @property
    def identities(self) -> list[bytes]:
        """Return the identities of messages taken in lately, oldest first."""
        return [*self._identities]

    def begin(self, snapshot: StoredSession, now: Instant) -> None:
        """Continue from another process' commits, should Redis fall back behind them."""
        self._add(_ListEntries(snapshot.revision, now.monotonic, snapshot.newest), snapshot.identities)
        self._position = snapshot.position
        at_hand = len(snapshot.newest.pending) == snapshot.pending
        if at_hand:  # else Redis may lose a message that cannot be restored, and to hear it twice is better than never
            self.unidentified.restore(snapshot.fields.get("unidentified", b"[]"), now)

    def acknowledged(self, position: bytes) -> None:
        """Note the position in the input up to which the last commit acknowledged deliveries."""
        self._position = position

    def keep(
        self, revision: int, lists: Lists, identities: Sequence[bytes], unidentified: Sequence[bytes], now: Instant
    ) -> None:
        """Remember what a commit that Redis has acknowledged put into ``lists``, and the deliveries that it took in: by
        their ``identities``, or by their positions where they have none.
        """
        self._add(_ListEntries(revision, now.monotonic, lists), identities)
        self.unidentified.take(unidentified, now)

    def lists_after(self, revision: int) -> Lists:
        """Return what was put into lists since the commit with this revision, as far as it is remembered."""
        return reduce(add, (given.lists for given in self._given if given.revision > revision), Lists())

    def _add(self, given: _ListEntries, identities: Sequence[bytes]) -> None:
        self._given.append(given)
        self._size += given.lists.size
        self._identities.update(dict.fromkeys(identities, given.moment))
        earliest = given.moment - SECONDS
        while self._given[0].moment < earliest or (self._size > BYTES and len(self._given) > 1):
            self._size -= self._given.popleft().lists.size
        while len(self._identities) > IDENTITIES and next(iter(self._identities.values())) < earliest:
            self._identities.popitem(last=False)
