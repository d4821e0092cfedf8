"""Changes of a conversation are collected here until the next commit writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import orjson

from context_builder.archive.archive import SummaryRow
from context_builder.session.conversation.memory_batch import MemoryBatch, StruckMessage
from context_builder.session.messages.buffer import Buffer
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.summary.citation import CitedMessage
from context_builder.session.summary.rolling_summary import Summary

RESPONSE: Final = "c:"
"""Begins the checkpoint's fields of assistant responses, before the id."""

CORRECTION: Final = "x:"
"""Begins the fields of what was corrected in the pending list, before the message's id: its text, if that was
corrected, and its speaker."""

AGAIN: Final = "r:"
"""Begins the fields of messages that are to be summarized again, before the id."""


@dataclass(slots=True)
class Changes:
    """Collects what changes in a conversation while events are applied, for the next commit.

    ``fields`` are checkpoint fields to set (an entry is encoded when it is written, so a field that changes
    twice is encoded once) and ``dropped`` fields to delete. ``revised`` says that something said before is said
    otherwise. Of messages ``struck`` it holds the text, too, as far as it is known, to be removed from what waits;
    ``blanks`` has how each begins in the pending list, and what takes its place there. ``index_at_least`` is put into
    the message index where it is missing.
    """

    dirty: bool = False
    fields: dict[str, BufferedMessage | bytes] = field(default_factory=dict)
    dropped: dict[str, None] = field(default_factory=dict)
    pending_added: list[BufferedMessage] = field(default_factory=list)
    pending_trimmed: int = 0
    outbox: list[SummaryRow] = field(default_factory=list)
    memory_outbox: list[MemoryBatch] = field(default_factory=list)
    revised: bool = False
    struck: list[tuple[StruckMessage, str]] = field(default_factory=list)
    blanks: list[tuple[bytes, bytes]] = field(default_factory=list)
    index_at_least: dict[str, bytes] = field(default_factory=dict)

    def mark(self) -> None:
        self.dirty = True

    def put(self, entry: BufferedMessage) -> None:
        self.fields[entry.field] = entry

    def drop(self, entry: BufferedMessage) -> None:
        self.drop_field(entry.field)

    def move_to_pending(self, entry: BufferedMessage) -> None:
        self.drop(entry)
        self.pending_added.append(entry)

    def summarized(self, entries: Sequence[BufferedMessage], *, from_pending: bool) -> None:
        """Note that ``entries`` left the head of the pending list, or the buffer."""
        if from_pending:
            self.pending_trimmed += len(entries)
        else:
            for entry in entries:
                self.drop(entry)

    def put_departed(self, buffer: Buffer) -> None:
        """Note the newest messages that left the buffer, unless newer ones are still in it."""
        if buffer.is_short():
            self.rewrite_departed(buffer)

    def put_field(self, name: str, value: bytes) -> None:
        self.dropped.pop(name, None)
        self.fields[name] = value

    def drop_field(self, name: str) -> None:
        self.fields.pop(name, None)
        self.dropped[name] = None

    def rewrite_departed(self, buffer: Buffer) -> None:
        """Note that messages that left the buffer say something else, or are gone."""
        self.put_field("departed", b"[%s]" % b",".join(entry.encode() for entry in buffer.departed))

    def put_response(self, entry_id: int, record: bytes) -> None:
        self.put_field(f"{RESPONSE}{entry_id}", record)

    def drop_response(self, entry_id: int) -> None:
        self.drop_field(f"{RESPONSE}{entry_id}")

    def put_correction(self, entry_id: int, correction: tuple[str | None, str]) -> None:
        self.put_field(f"{CORRECTION}{entry_id}", orjson.dumps(correction))

    def drop_correction(self, entry_id: int) -> None:
        self.drop_field(f"{CORRECTION}{entry_id}")

    def put_again(self, entry: BufferedMessage) -> None:
        self.put_field(f"{AGAIN}{entry.id}", entry.encode())

    def drop_again(self, entry_id: int) -> None:
        self.drop_field(f"{AGAIN}{entry_id}")

    def put_summary(self, summary: Summary) -> None:
        self.fields["summary"] = orjson.dumps(summary.checkpoint())

    def put_source(self, source: CitedMessage) -> None:
        self.put_field(source.field, source.encode())

    def replace_sources(self, earlier: Mapping[int, CitedMessage], present: Mapping[int, CitedMessage]) -> None:
        """Note that points cite the ``present`` messages, and no longer the other ``earlier`` ones."""
        for entry_id, source in present.items():
            if earlier.get(entry_id) != source:
                self.put_source(source)
        for entry_id, source in earlier.items():
            if entry_id not in present:
                self.drop_field(source.field)

    def archive(self, row: SummaryRow) -> None:
        self.outbox.append(row)

    def remember(self, part: MemoryBatch) -> None:
        self.memory_outbox.append(part)

    def follow(self, earlier: Changes) -> None:
        """Merge in changes that were to be written before these."""
        self.dropped = {name: None for name in earlier.dropped if name not in self.fields} | self.dropped
        self.pending_added = earlier.pending_added + self.pending_added
        self.pending_trimmed += earlier.pending_trimmed
        self.outbox = earlier.outbox + self.outbox
        self.memory_outbox = earlier.memory_outbox + self.memory_outbox
        self.revised |= earlier.revised
        self.struck = earlier.struck + self.struck
        self.blanks = earlier.blanks + self.blanks

    def encoded_fields(self) -> dict[str, bytes]:
        return {name: value if isinstance(value, bytes) else value.encode() for name, value in self.fields.items()}
