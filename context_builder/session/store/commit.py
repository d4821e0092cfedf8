"""A commit is described here by what it writes and what Redis answers, and made into KEYS and ARGV of ``commit.lua``.

A state patch sends only the changes of the published state: messages that leave, and new ones. With a full buffer the
state is some hundred kilobytes to a few megabytes. Sent whole, every message would carry that to Redis, into its
append-only file and to its replicas. JSON allows white space between its parts, so what leaves is blanked where it
stands, and what comes is written behind what stays. When too much is blank, all of the state is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final, NamedTuple, Self

from context_builder.session.config import SessionConfig
from context_builder.session.conversation.changes import Changes
from context_builder.session.conversation.state import PublishedState
from context_builder.session.keys import FORGOTTEN, PACKAGE, PACKAGE_SIGNATURE, SESSIONS, Keys
from context_builder.session.messages.buffer import PublishedEntries
from context_builder.session.messages.message_index import MOST_SPEAKERS
from context_builder.session.store.deliveries import sha1_of
from context_builder.session.store.recovery import Lineage, Lists
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
        edits = (part for edit in self.edits for part in edit)
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


_NONE: Final = Lists()


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


RECENT: Final = 2000
"""Identities that are kept for a process that continues the session."""

RECENT_MS: Final = 60_000
"""Longer than what a Redis that falls back may lose."""


def commit_keys(keys: Keys) -> tuple[str, ...]:
    return (
        keys.owner,
        keys.input,
        keys.state,
        keys.conversation,
        keys.checkpoint,
        keys.pending,
        keys.seen,
        keys.outbox,
        keys.memory_outbox,
        keys.dead,
        keys.control,
        keys.recent,
        SESSIONS,
        FORGOTTEN,
        keys.message_index,
        keys.packages,
    )


def constant_arguments(lease: bytes, lineage: Lineage, rules: SessionConfig, keys: Keys) -> tuple[Any, ...]:
    """Return the arguments that come first: every commit under the lease has the same."""
    return (
        lease,
        int(rules.lease * 1000),
        lineage.writer,
        keys.forgotten_field,
        int(rules.state_ttl * 1000),
        int(rules.conversation_state_ttl * 1000),
        keys.session_id,
        rules.dead_letters_max,
        rules.dead_letters_bytes,
        RECENT,
        RECENT_MS,
    )


def commit_arguments(
    commit: Commit, lineage: Lineage, target: int, patch: StatePatch | None, acknowledged: Sequence[bytes]
) -> list[Any]:
    """Return the arguments that come after the constant ones, of a commit that becomes revision ``target``: with its
    ``patch`` of the published state, and the deliveries that it acknowledges.
    """
    base = lineage.base
    args: list[Any] = [
        base.revision,
        base.by,
        target,
        base.mark,
        lineage.latest.mark,
        *(patch.arguments() if patch else (b"", 0, b"", 0)),
        commit.conversation_state,
        commit.silent_for,
        len(acknowledged),
        *_ends(acknowledged),
        commit.begin,
        commit.end,
        commit.changes.pending_trimmed,
        commit.pending,
        int(commit.rewrite),
        PACKAGE if commit.changes.revised else b"",
        PACKAGE_SIGNATURE,
        commit.indexed_from,
        MOST_SPEAKERS,
    ]
    lists = commit.replayed + commit.lists if commit.rewrite else commit.lists
    for values in (
        _checkpoint_fields(commit, lineage),
        [*commit.changes.dropped],
        lists.pending,
        commit.identities,
        lists.outbox,
        lists.memory_outbox,
        lists.dead,
        lists.index,
        [part for name, held in commit.changes.index_at_least.items() for part in (name, held)],
        lists.blanks,
    ):
        args.append(len(values))
        args.extend(values)
    return args


def _ends(acknowledged: Sequence[bytes]) -> tuple[str, str]:
    """Return the digests of the oldest and of the newest delivery that is acknowledged."""
    if not acknowledged:
        return "", ""
    oldest = sha1_of(acknowledged[0])
    return oldest, oldest if len(acknowledged) == 1 else sha1_of(acknowledged[-1])


def _checkpoint_fields(commit: Commit, lineage: Lineage) -> list[Any]:
    """Return the checkpoint's fields that are set, and their values."""
    fields: list[Any] = ["head", commit.head, "order", commit.order] if commit.head else []
    if commit.rewrite or (commit.head and lineage.base.by != lineage.writer):
        fields += ("ancestors", lineage.encode())
    for name, encoded in commit.changes.encoded_fields().items():
        fields += (name, encoded)
    return fields
