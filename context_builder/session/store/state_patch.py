"""A state patch sends only the changes of the published state: messages that leave, and new ones.

With a full buffer the state is some hundred kilobytes to a few megabytes. Sent whole, every message would carry that to
Redis, into its append-only file and to its replicas. JSON allows white space between its parts, so what leaves is
blanked where it stands, and what comes is written behind what stays. When too much is blank, all of the state is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from context_builder.session.conversation.published_state import PublishedState
from context_builder.session.messages.publication import PublishedEntries
from context_builder.values import value

MARK_BYTES: Final = 64
"""The end of a state, which holds its revision and the moment of its publication, tells it from every other."""

MOST_BLANK: Final = 0.5
"""More white space than this share of a state is not left in it. A message is then sent three times on average: as it
comes, and, since half a buffer of messages has to leave before all of it is sent, twice with others."""


@value
class StoredState:
    """Describes a state as Redis holds it: ``gap`` spaces before its entries, ``pad`` spaces behind them.

    It is written down in bytes as long as the state's can be had.
    """

    state: PublishedState
    gap: int = 0
    pad: int = 0

    def __bytes__(self) -> bytes:
        blank = b" " * self.gap, b" " * self.pad
        entries = b",".join(self.state.buffer.entries)
        return b"".join((self.state.before, blank[0], entries, blank[1], self.state.after))

    @property
    def length(self) -> int:
        """Return the length in bytes."""
        return self.state.length + self.gap + self.pad

    @property
    def first(self) -> int:
        """Return the offset of the first entry."""
        return len(self.state.before) + self.gap

    @property
    def mark(self) -> bytes:
        """Return the end of the state, by which it is recognized."""
        return self.state.after[-MARK_BYTES:]


class Edit(NamedTuple):
    """Writes so many ``spaces`` and then ``text`` at the offset ``at``."""

    at: int
    spaces: int
    text: bytes


@value
class StatePatch:
    """The ``edits`` of a value of ``length`` bytes that ends with ``mark``, or else the ``whole``; and the result."""

    result: StoredState
    whole: bytes = b""
    edits: Sequence[Edit] = ()
    length: int = 0
    mark: bytes = b""

    @property
    def size(self) -> int:
        """Return how many bytes are sent."""
        return len(self.whole) + sum(len(edit.text) for edit in self.edits)

    def arguments(self) -> list[bytes | int]:
        """Return the patch's arguments of ``commit.lua``, in order."""
        edits = (value for edit in self.edits for value in edit)
        return [self.whole, self.length, self.mark, len(self.edits), *edits]

    @classmethod
    def between(cls, old: StoredState | None, new: PublishedState) -> Self:
        """Return the patch from ``old`` to ``new``: all of ``new`` when it does not tell how it differs, little is
        common, or too much would be blank.
        """
        patch = cls._of_changes(old, new) if old and new.buffer.base is old.state.buffer.edition else None
        if patch is None or patch.size >= new.length // 2:
            return cls(StoredState(new), whole=bytes(new))
        return patch

    @classmethod
    def _of_changes(cls, old: StoredState, new: PublishedState) -> Self | None:
        had, gone = old.state, new.buffer.gone
        gap = old.first + gone - len(new.before)
        text = _changed_entries(new.buffer)
        end = old.first + gone + new.length - len(new.before) - len(new.after)
        pad = max(0, old.length - (end + len(new.after)))
        if gap < 0 or gap + pad > MOST_BLANK * new.length:
            return None
        edits = (
            Edit(old.first, gone, b""),
            *_changed_start(had.before, new.before),  # may reach into what is blank now
            Edit(end - len(text), 0, text),
            Edit(end, pad, new.after),
        )
        result = StoredState(new, gap, pad)
        return cls(result, edits=[edit for edit in edits if edit.spaces or edit.text], length=old.length, mark=old.mark)


def _changed_start(old: bytes, new: bytes) -> list[Edit]:
    """Return what makes the beginning ``new`` of ``old``; where it is shorter, the rest becomes blank."""
    if old == new:
        return []
    same = common_start(old, new)
    return [Edit(same, 0, new[same:]), Edit(len(new), max(0, len(old) - len(new)), b"")]


def _changed_entries(entries: PublishedEntries) -> bytes:
    """Return what is to be written behind the entries that were kept.

    Of an entry that changed it is what comes after the part that did not: a long text is not sent again.
    """
    changed = entries.entries[entries.kept :]
    if changed and entries.replaced is not None:
        same = common_start(entries.replaced, changed[0])
        return b",".join(changed)[same:]
    comma = b"," if changed and entries.kept else b""
    return comma + b",".join(changed)


def common_start(old: bytes, new: bytes) -> int:
    """Return how many bytes both begin with; found by halving, so that the machine compares almost all."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
