"""The newest of the assistant's own contributions are kept here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from context_builder.session.conversation.changes import Changes
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.messages.message import CONSILIENCE, UNKNOWN_SPEAKER, Message
from context_builder.session.stored import RESPONSE


def checked_response(record: bytes) -> bytes:
    """Return the record. Raises :class:`ValueError` for one that :class:`Responses` did not write."""
    RESPONSE.whole(record)
    return record


class Responses:
    """Keeps the newest ``records`` by id, oldest first, as the state publishes them: JSON, at most ``limit`` of them
    within ``max_bytes``, but always one.
    """

    def __init__(self, limit: int, max_bytes: int) -> None:
        self._limit = limit
        self._max_bytes = max_bytes
        self._bytes = 0
        self.records: dict[int, bytes] = {}

    def restore(self, records: Mapping[int, bytes]) -> None:
        """Restore what a checkpoint holds."""
        self.records = dict(sorted(records.items()))
        self._bytes = sum(map(len, records.values()))

    def add(self, entry: BufferedMessage, message: Message, changes: Changes) -> None:
        """Take in what the assistant said; note in ``changes`` what to write down and what to drop."""
        fields: dict[str, Any] = {
            "id": entry.id,
            "message_number": message.number,
            "speaker": CONSILIENCE if message.speaker == UNKNOWN_SPEAKER else message.speaker,
            "text": message.text,
            "timestamp": message.timestamp,
            "type": "consilience",
            "metadata": message.metadata,
        }
        if message.timestamp_raw is not None:
            fields["timestamp_raw"] = message.timestamp_raw
        self.records[entry.id] = orjson.dumps(fields)
        self._bytes += len(self.records[entry.id])
        changes.put_response(entry.id, self.records[entry.id])
        while len(self.records) > self._limit or (self._bytes > self._max_bytes and len(self.records) > 1):
            oldest = next(iter(self.records))
            self._bytes -= len(self.records.pop(oldest))
            changes.drop_response(oldest)

    def revise(self, entry_id: int, text: str | None, changes: Changes) -> None:
        """Let a contribution say something else."""
        if text is not None and entry_id in self.records:
            record = orjson.dumps({**orjson.loads(self.records[entry_id]), "text": text})
            self._bytes += len(record) - len(self.records[entry_id])
            self.records[entry_id] = record
            changes.put_response(entry_id, record)

    def strike(self, entry_id: int, changes: Changes) -> None:
        """Let nothing of a contribution be left."""
        if (record := self.records.pop(entry_id, None)) is not None:
            self._bytes -= len(record)
            changes.drop_response(entry_id)

    def decoded(self) -> list[dict[str, Any]]:
        """Return the responses as plain data, oldest first."""
        return [orjson.loads(record) for record in self.records.values()]
