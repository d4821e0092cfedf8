"""The analysis tasks of a recorded run, read so that they can be done again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from context_builder.analysis.analyst import AnalystMessage, SummaryRequest
from context_builder.recording.lines import read_known, read_message
from context_builder.recording.recording import Line
from context_builder.session.conversation.tasks import DomainTask, KeywordTask
from context_builder.session.messages.buffered_message import BufferedMessage


class RecordedTasks:
    """Reads recorded tasks, which name messages by their ids, with the messages seen so far."""

    def __init__(self, begin: Line) -> None:
        self._messages_by_id: dict[int, AnalystMessage] = {}
        self._learn(read_entries(begin, [v for k, v in begin.more["fields"].items() if k.startswith("m:")]))

    def learn_messages(self, line: Line) -> None:
        """Remember the messages in the line."""
        if line.event == "received":
            messages = line.more["messages"]
            first = line.more["last_id"] - len(messages) + 1
            self._learn(
                BufferedMessage(first + i, read_message(message), line.at) for i, message in enumerate(messages)
            )
        elif line.event == "task_started":
            self._learn(read_entries(line, line.more.get("entries", ())))

    def keywords(self, line: Line) -> KeywordTask:
        return KeywordTask(self._messages(line))

    def domains(self, line: Line) -> DomainTask:
        return DomainTask(self._messages(line), line.more["through"], line.more["new"])

    def summary(self, line: Line) -> SummaryRequest:
        return SummaryRequest(self._messages(line), read_known(line.more["known"]), line.more["topic_keywords"])

    def _messages(self, line: Line) -> list[AnalystMessage]:
        return [self._messages_by_id[message_id] for message_id in line.more["ids"]]

    def _learn(self, entries: Iterable[BufferedMessage]) -> None:
        self._messages_by_id.update((entry.id, entry.said()) for entry in entries)


def read_entries(line: Line, written: Iterable[Any]) -> list[BufferedMessage]:
    """Return entries of the checkpoint or of the pending list, as they were at the line's moment."""
    return [BufferedMessage.decode(orjson.dumps(entry), line.at) for entry in written]
