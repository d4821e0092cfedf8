"""A publication keeps the JSON of the messages that a buffer publishes, and what changed of it since it was taken last.

Of a hundred messages hardly one changes from one commit to the next. Who writes them is told which, so that nothing has
to look through the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


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
