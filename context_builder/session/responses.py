"""The assistant's own contributions, newest kept."""

from __future__ import annotations

from typing import Any

from context_builder.session.changes import Changes
from context_builder.session.entry import Entry
from context_builder.session.message import CONSILIENCE, UNKNOWN_SPEAKER, Message


class Responses:
    """``records`` are at most ``limit`` responses as the state publishes them, by id, oldest first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.records: dict[int, dict[str, Any]] = {}

    def add(self, entry: Entry, message: Message, changes: Changes) -> None:
        """Take in what the assistant said; note in ``changes`` what to write down and what to drop."""
        record = {
            "id": entry.id,
            "message_number": message.number,
            "speaker": CONSILIENCE if message.speaker == UNKNOWN_SPEAKER else message.speaker,
            "text": message.text,
            "timestamp": message.timestamp,
            "type": "consilience",
            "metadata": message.metadata,
        }
        if message.timestamp_raw is not None:
            record["timestamp_raw"] = message.timestamp_raw
        self.records[entry.id] = record
        changes.put_response(entry.id, record)
        while len(self.records) > self._limit:
            oldest = next(iter(self.records))
            del self.records[oldest]
            changes.drop_response(oldest)
