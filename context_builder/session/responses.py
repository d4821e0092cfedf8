"""The assistant's own contributions, newest kept."""

from __future__ import annotations

from typing import Any

from context_builder.session.changes import Changes
from context_builder.session.entry import Entry
from context_builder.session.message import CONSILIENCE, Message


class Responses:
    """``records`` are at most ``limit`` responses as the state publishes them, by id, oldest first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.records: dict[int, dict[str, Any]] = {}

    def add(self, entry: Entry, message: Message, changes: Changes) -> None:
        """Take in what the assistant said; note in ``changes`` what to write down and what to drop."""
        self.records[entry.id] = {
            "id": entry.id,
            "message_number": message.number,
            "speaker": CONSILIENCE,
            "text": message.text,
            "timestamp": message.timestamp,
            "type": "consilience",
            "metadata": message.metadata,
        }
        changes.put_response(entry.id, self.records[entry.id])
        while len(self.records) > self._limit:
            oldest = next(iter(self.records))
            del self.records[oldest]
            changes.drop_response(oldest)
