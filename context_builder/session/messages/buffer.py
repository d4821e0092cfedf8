"""The buffer holds the messages that are still there word for word, in conversation order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from context_builder.session.messages.buffered_message import BufferedMessage, encoded


class Buffer:
    """Holds entries in order; the newest are published, at most ``limit`` within ``max_bytes`` of JSON, but always one.
    Older ones wait in the pending list.

    ``pending`` counts the list, whose entries this process does not hold, and ``pending_tokens`` reckons what
    they have. Entries that a summary is being made of are pinned: they do not move to the pending list, so that no
    message is taken twice.
    """

    def __init__(self, limit: int, max_bytes: int) -> None:
        self._limit = limit
        self._max_bytes = max_bytes
        self.entries: dict[int, BufferedMessage] = {}
        self.pending = 0
        self.pending_tokens = 0
        self._order: list[BufferedMessage] = []
        self._pinned: frozenset[int] = frozenset()
        self._highest_number = -1
        self._latest_time = float("-inf")
        self._has_late = False
        self._sizes: dict[int, int] = {}
        self._without_keywords: set[int] = set()
        self._first = 0  # published, in the order
        self._bytes = 0  # of what is published

    def insert(self, entry: BufferedMessage) -> None:
        """Put the entry where the contract's order wants it: last, unless it came late."""
        self.entries[entry.id] = entry
        if entry.needs_keywords:
            self._without_keywords.add(entry.id)
        size = self._sizes[entry.id] = _size(entry)
        index = self._late_index(entry)
        if index is None:
            self._order.append(entry)
        else:
            self._order.insert(index, entry)
            self._has_late = True
        if index is not None and index < self._first:
            self._first += 1
        else:
            self._bytes += size
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
        outside = max(0, len(self._order) - published) if pending else 0
        self.pin(self._order[:outside])  # what was not published was pinned, and is older than what is pending
        self._publish_from(outside)

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

    @property
    def published_count(self) -> int:
        return len(self._order) - self._first

    def encoded(self) -> list[bytes]:
        """Return the published entries as JSON, without the commas between them."""
        return encoded(self.published())

    def touched(self, entry: BufferedMessage) -> None:
        """Note that the entry changed; with its new size there may be too much to publish."""
        if not entry.needs_keywords:
            self._without_keywords.discard(entry.id)
        before, self._sizes[entry.id] = self._sizes[entry.id], _size(entry)
        if not self._first or entry not in self._order[: self._first]:
            self._bytes += self._sizes[entry.id] - before
            self._fit()

    def newest(self, count: int) -> list[BufferedMessage]:
        return self._order[-count:]

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

    def overflow(self) -> list[BufferedMessage]:
        """Remove the entries that no longer fit, oldest first; they now count as pending."""
        outside = self._order[: self._first]
        leaving = [entry for entry in outside if entry.id not in self._pinned]
        if leaving:
            staying = [entry for entry in outside if entry.id in self._pinned]
            self._order[: self._first], self._first = staying, len(staying)
            for entry in leaving:
                self._let_go(entry.id)
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
        leaving = set(ids)
        if leaving:
            outside = sum(entry.id not in leaving for entry in self._order[: self._first])
            self._order = [entry for entry in self._order if entry.id not in leaving]
            self._pinned -= leaving
            for entry_id in leaving & self.entries.keys():
                self._let_go(entry_id)
            self._publish_from(outside)

    def _let_go(self, entry_id: int) -> None:
        del self.entries[entry_id], self._sizes[entry_id]
        self._without_keywords.discard(entry_id)

    def _publish_from(self, first: int) -> None:
        """Publish the entries from that one on. What left the publication does not come back: others after it may be
        pending."""
        self._first = first
        self._bytes = sum(self._sizes[entry.id] for entry in self._order[first:])
        self._fit()

    def _fit(self) -> None:
        """Publish no more than there is room for."""
        published = self.published_count
        while published > self._limit or (self._bytes > self._max_bytes and published > 1):
            self._bytes -= self._sizes[self._order[self._first].id]
            self._first += 1
            published -= 1

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


def _size(entry: BufferedMessage) -> int:
    """Return the bytes that the entry takes where it is published, its comma included."""
    return len(entry.encode()) + 1
