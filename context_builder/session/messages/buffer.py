"""The buffer holds the messages that are still there word for word, in conversation order.

A publication keeps the JSON of those that it publishes, and what changed of it since it was taken last. Of a hundred
messages hardly one changes from one commit to the next. Who writes them is told which, so that nothing has to look
through the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from context_builder.clock import Instant
from context_builder.session.messages.buffered_message import BYTES_PER_TOKEN, BufferedMessage


class Edition:
    """Tells what was taken from everything else that was; two are equal only if they are the same."""

    __slots__ = ()


class PublishedEntries(NamedTuple):
    """The entries of a publication as they were when they were taken, and how they differ from edition ``base``.

    Of the base, ``gone`` bytes left at its beginning, with the commas behind them. The ``kept`` entries after them are
    the first of this edition. Where what comes next is made of an entry of the base, that one is ``replaced``.
    ``length`` is that of all, with the commas between them.
    """

    edition: Edition
    base: Edition
    length: int
    gone: int
    kept: int
    replaced: bytes | None
    publication: Publication

    @property
    def entries(self) -> Sequence[bytes]:
        """Return all entries, to be read at once. Raises :class:`RuntimeError` after the publication has changed."""
        return self.publication.entries_of(self.edition)


class Publication:
    """The JSON of what is published, in order; its ``length`` counts a comma after each entry."""

    __slots__ = ("_base", "_entries", "_gone", "_kept", "_replaced", "_taken", "length")

    _base: Edition
    _gone: int
    _kept: int
    _replaced: bytes | None

    def __init__(self) -> None:
        self.length = 0
        self._entries: list[bytes] = []
        self._taken: Edition | None = None  # of which nothing has changed yet
        self._begin(Edition())

    def append(self, entry: bytes) -> None:
        self._taken = None
        self._entries.append(entry)
        self.length += len(entry) + 1

    def insert(self, index: int, entry: bytes) -> None:
        self._changed_from(index)
        self._entries.insert(index, entry)
        self.length += len(entry) + 1

    def replace(self, index: int, entry: bytes) -> None:
        """Put another entry in the place of one."""
        self._changed_from(index)
        self.length += len(entry) - len(self._entries[index])
        self._entries[index] = entry

    def drop_first(self, count: int) -> None:
        """Let the first entries go."""
        self._taken = None
        self.length -= _length(self._entries[:count])
        self._gone += _length(self._entries[: min(count, self._kept)])
        if count > self._kept:  # what it was made of stands elsewhere
            self._replaced = None
        self._kept = max(0, self._kept - count)
        del self._entries[:count]

    def keep(self, wanted: Sequence[bool]) -> None:
        """Keep those of the entries that are wanted."""
        first = next((index for index, is_wanted in enumerate(wanted) if is_wanted), len(wanted))
        self.drop_first(first)
        rest = wanted[first:]
        if not all(rest):
            self._changed_from(rest.index(False))
            self._entries = [entry for entry, is_wanted in zip(self._entries, rest, strict=True) if is_wanted]
            self.length = _length(self._entries)

    def take(self) -> PublishedEntries:
        """Return what is published now; what changes from here on is told by the next."""
        edition = Edition()
        taken = PublishedEntries(
            edition, self._base, max(0, self.length - 1), self._gone, self._kept, self._replaced, self
        )
        self._begin(edition)
        self._taken = edition
        return taken

    def entries_of(self, edition: Edition) -> Sequence[bytes]:
        """Return the entries while they are those of this edition. Raises :class:`RuntimeError` afterwards."""
        if self._taken is not edition:
            raise RuntimeError("what was published has changed since")
        return self._entries

    def _begin(self, base: Edition) -> None:
        self._base = base
        self._gone = 0
        self._kept = len(self._entries)
        self._replaced = None

    def _changed_from(self, index: int) -> None:
        self._taken = None
        if index < self._kept:
            self._kept = index
            self._replaced = self._entries[index]


def _length(entries: Iterable[bytes]) -> int:
    """Return the bytes of the entries with a comma behind each."""
    return sum(len(entry) + 1 for entry in entries)


BYTES_BESIDE_TEXT: Final = 256
"""About so much a pending message takes beside its text: names, times, keywords and Redis' own."""

RECENT: Final = 10
"""Newest messages that are at hand, short, after they have left the buffer."""


class Buffer:
    """Entries in order; the newest are published, at most ``limit`` within ``max_bytes`` of JSON, but always one.
    Older ones wait in the pending list. ``publication`` has the JSON of what is published.

    ``pending`` counts the list, whose entries this process does not hold, and ``pending_tokens`` reckons what
    they have. ``departed`` are the newest that left, as an inference of domains is shown them. Entries that a summary
    is being made of are pinned: they do not move to the pending list, so that no message is
    taken twice.
    """

    def __init__(self, limit: int, max_bytes: int) -> None:
        self._limit = limit
        self._max_bytes = max_bytes
        self.entries: dict[int, BufferedMessage] = {}
        self.departed: deque[BufferedMessage] = deque(maxlen=RECENT)
        self.publication = Publication()
        self.pending = 0
        self.pending_tokens = 0
        self._order: list[BufferedMessage] = []
        self._pinned: frozenset[int] = frozenset()
        self._highest_number = -1
        self._latest_time = float("-inf")
        self._has_late = False
        self._without_keywords: set[int] = set()
        self._aged: set[int] = set()
        self._first = 0  # published, in the order

    def insert(self, entry: BufferedMessage) -> None:
        """Put the entry where the contract's order wants it: last, unless it came late."""
        self.entries[entry.id] = entry
        if entry.needs_keywords:
            self._without_keywords.add(entry.id)
        index = self._late_index(entry)
        if index is None:
            self._order.append(entry)
            self.publication.append(entry.encode())
        else:
            self._order.insert(index, entry)
            self._has_late = True
            if index < self._first:
                self._first += 1
            else:
                self.publication.insert(index - self._first, entry.encode())
        self._fit()
        if not entry.consilience and entry.number is not None:
            self._highest_number = max(self._highest_number, entry.number)
            self._latest_time = max(self._latest_time, entry.time)

    def restore(
        self, entries: Iterable[BufferedMessage], order: list[int], pending: int, pending_tokens: int, published: int
    ) -> None:
        """Fill an empty buffer from a checkpoint; ``order`` is empty when ids tell it, and so many were published."""
        for entry in sorted(entries, key=lambda e: e.id):
            self.insert(entry)
        position = {entry_id: i for i, entry_id in enumerate(order)}
        self._order = sorted(self.entries.values(), key=lambda e: position.get(e.id, e.id))
        self._has_late = bool(order)
        self.pending, self.pending_tokens = pending, pending_tokens
        self._first = max(0, len(self._order) - published) if pending else 0
        self.pin(self._order[: self._first])  # what was not published was pinned, and is older than what is pending
        self.publication = Publication()
        for entry in self.published():
            self.publication.append(entry.encode())
        self._fit()

    def order(self) -> list[int]:
        """Return the ids in order; empty when they ascend."""
        if not self._has_late:
            return []
        ids = [entry.id for entry in self._order]
        self._has_late = ids != sorted(ids)
        return ids if self._has_late else []

    def ordered(self) -> list[BufferedMessage]:
        return self._order

    def published(self) -> list[BufferedMessage]:
        return self._order[self._first :]

    def without_keywords(self) -> list[BufferedMessage]:
        """Return the published entries that need keywords."""
        if self._first or self._has_late:
            return [entry for entry in self.published() if entry.id in self._without_keywords]
        return [self.entries[entry_id] for entry_id in sorted(self._without_keywords)]  # without touching the others

    def is_short(self) -> bool:
        """Return whether some of the newest messages have left the buffer."""
        return len(self._order) < RECENT and bool(self.departed)

    @property
    def published_count(self) -> int:
        return len(self._order) - self._first

    def touched(self, entries: Collection[BufferedMessage]) -> None:
        """Note that entries changed; with their new sizes there may be too much to publish."""
        for entry, place in self._places(entries):
            if not entry.needs_keywords:
                self._without_keywords.discard(entry.id)
            if place >= self._first:
                self.publication.replace(place - self._first, entry.encode())
                self._fit()

    def newest(self, count: int) -> list[BufferedMessage]:
        """Return the newest messages, also those that left the buffer."""
        return [*self.departed, *self._order[-count:]][-count:]

    def age(self, now: Instant, window: float) -> None:
        """Let entries count as old that were said a window of seconds before the newest of a talk that is not now.

        A talk of another time goes on by its own clock, also where it comes all at once. It is never kept longer than
        one of now. Its clock does not go back: of two sources whose clocks differ, what the slower one sends counts
        from when it came, as it does in a talk of now.
        """
        if self._latest_time > now.wall - window:
            return
        clock = 0.0
        for entry in self.entries.values():  # in order of arrival
            at = max(clock, entry.time)
            if not entry.consilience and entry.number is not None:
                clock = at
            if at <= self._latest_time - window:
                entry.entered = min(entry.entered, now.monotonic - window)
                self._aged.add(entry.id)

    def old_before_newest(self, count: int) -> list[BufferedMessage]:
        """Return the messages but for so many newest; of a talk that is not now, those alone that count as old."""
        entries = self.without_newest(count)
        return [entry for entry in entries if entry.id in self._aged] or entries if self._aged else entries

    def before(self, entry: BufferedMessage, count: int) -> list[BufferedMessage]:
        """Return so many messages that were said just before one of the buffer."""
        place = next((place for _, place in self._places([entry])), 0)
        return [*self.departed, *self._order[max(0, place - count) : place]][-count:]

    def without_newest(self, count: int) -> list[BufferedMessage]:
        return self._order[: max(0, len(self._order) - count)]

    def oldest_entered(self, *, keep_last: int) -> float | None:
        """Return the monotonic arrival of the oldest entry but for the ``keep_last`` newest."""
        if keep_last:
            return min((entry.entered for entry in self.without_newest(keep_last)), default=None)
        first = next(iter(self.entries.values()), None)  # ids are given in order of arrival
        return None if first is None else first.entered

    def waiting_outside(self) -> int:
        """Return how many messages are neither published nor summarized."""
        return self.pending + self._first

    def waiting_tokens(self) -> int:
        """Return the estimated tokens of all messages that are not summarized."""
        return self.pending_tokens + sum(entry.estimated_tokens for entry in self._order)

    def pending_bytes(self) -> int:
        """Return the estimated size of the pending list."""
        return self.pending_tokens * BYTES_PER_TOKEN + self.pending * BYTES_BESIDE_TEXT

    def overflow(self) -> list[BufferedMessage]:
        """Remove the entries that no longer fit, oldest first; they now count as pending."""
        outside = self._order[: self._first]
        leaving = [entry for entry in outside if entry.id not in self._pinned]
        if leaving:
            staying = [entry for entry in outside if entry.id in self._pinned]
            self._order[: self._first], self._first = staying, len(staying)
            for entry in leaving:
                self._let_go(entry)
        self.pending += len(leaving)
        self.pending_tokens += sum(entry.estimated_tokens for entry in leaving)
        return leaving

    def leave_pending(self, entries: Sequence[BufferedMessage]) -> None:
        """Note that ``entries``, the oldest of the pending list, left it."""
        self.pending -= len(entries)
        self.pending_tokens = max(0, self.pending_tokens - sum(entry.estimated_tokens for entry in entries))

    def lose_pending(self) -> int:
        """Note that the pending list turned out to be empty; return how many messages were counted in it."""
        lost, self.pending, self.pending_tokens = self.pending, 0, 0
        return lost

    def pin(self, entries: Iterable[BufferedMessage]) -> None:
        self._pinned = frozenset(entry.id for entry in entries)

    def pinned(self) -> list[BufferedMessage]:
        return [entry for entry in self._order if entry.id in self._pinned] if self._pinned else []

    def remove(self, ids: Iterable[int]) -> None:
        """Remove entries. What left the publication does not come back: others after it may be pending."""
        leaving = set(ids)
        if leaving:
            self.publication.keep([entry.id not in leaving for entry in self.published()])
            self._first = sum(entry.id not in leaving for entry in self._order[: self._first])
            left = [entry for entry in self._order if entry.id in leaving]
            self._order = [entry for entry in self._order if entry.id not in leaving]
            self._pinned -= leaving
            for entry in left:
                self._let_go(entry)

    def revised(self, entry: BufferedMessage) -> None:
        """Note that an entry says something else than before."""
        (self._without_keywords.add if entry.needs_keywords else self._without_keywords.discard)(entry.id)
        self.touched([entry])

    def strike(self, entry_id: int) -> BufferedMessage | None:
        """Let nothing of a message be left here; return it, if it was in the buffer."""
        entry = self.entries.get(entry_id)
        self.remove([entry_id] if entry else ())
        for departed in [one for one in self.departed if one.id == entry_id]:
            self.departed.remove(departed)
        return entry

    def _let_go(self, entry: BufferedMessage) -> None:
        del self.entries[entry.id]
        self._without_keywords.discard(entry.id)
        self._aged.discard(entry.id)
        self.departed.append(entry.shortened())

    def _places(self, entries: Collection[BufferedMessage]) -> Iterator[tuple[BufferedMessage, int]]:
        """Yield entries with their places in the order; what changes is hardly ever far from the end."""
        left = {entry.id for entry in entries}
        for place in range(len(self._order) - 1, -1, -1):
            if not left:
                return
            if (entry := self._order[place]).id in left:
                left.remove(entry.id)
                yield entry, place

    def _fit(self) -> None:
        """Publish no more than there is room for."""
        while (published := self.published_count) > self._limit or (
            self.publication.length > self._max_bytes and published > 1
        ):
            self.publication.drop_first(1)
            self._first += 1

    def _late_index(self, entry: BufferedMessage) -> int | None:
        """Return where a late listener message belongs: before the first with a higher number and a later time."""
        if entry.consilience or entry.number is None:
            return None
        if entry.number >= self._highest_number or entry.time >= self._latest_time:
            return None
        for index, other in enumerate(self._order):
            if (
                not other.consilience
                and other.number is not None
                and other.number > entry.number
                and other.time > entry.time
            ):
                return index
        return None
