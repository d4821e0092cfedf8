"""A recording as it is read: line by line, whatever its length, and its tasks so that they can be done again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from context_builder.analysis.analyst import AnalystMessage, SummaryRequest
from context_builder.clock import Instant
from context_builder.errors import RecordingError
from context_builder.recording.lines import SCHEMA, read_known, read_message, read_revision
from context_builder.session.conversation.conversation import KEYWORD_CONTEXT
from context_builder.session.conversation.tasks import DomainTask, KeywordTask
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.messages.revision import Correction, Revision, SpeakerRename


@dataclass(frozen=True, slots=True)
class Line:
    """Something that happened. ``number`` counts the file's lines from 1; ``more`` depends on the event."""

    number: int
    event: str
    run: str
    at: Instant
    more: Mapping[str, Any]


class Recording:
    """Reads the recording in ``path``. Lines that were cut off or damaged are passed over."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> Iterator[Line]:
        """Yield all lines in order. Raises :class:`RecordingError` when the file is no recording."""
        begun = False
        try:
            with self.path.open("rb") as file:
                for number, raw in enumerate(file, start=1):
                    line = parse(number, raw)
                    if line is None:
                        continue
                    if line.event == "begin":
                        self._check(line)
                        begun = True
                    if begun:
                        yield line
        except OSError as error:
            raise RecordingError(f"{self.path}: cannot be read: {error.strerror or error}") from None
        if not begun:
            raise RecordingError(f"{self.path}: is no recording of a session")

    def header(self) -> Line:
        """Return the first line: when the recording began, and of which session."""
        return next(self.lines())

    def published(self, until: float) -> Line:
        """Return the last state published by epoch second ``until``. Raises :class:`RecordingError` without one."""
        last = None
        for line in self.lines():
            if line.event == "published" and line.at.wall <= until:
                last = line
        if last is None:
            raise RecordingError(f"{self.path}: nothing was published yet; it begins at {self.header().at.iso()}")
        return last

    def _check(self, begin: Line) -> None:
        if begin.more["schema"] > SCHEMA:
            raise RecordingError(
                f"{self.path}: was made by a newer version, {begin.more['version']}; upgrade to read it"
            )


def parse(number: int, raw: bytes) -> Line | None:
    """Return the line; None for one that was cut off or damaged."""
    try:
        fields = orjson.loads(raw)
        wall, monotonic = fields.pop("at")
        at = Instant(wall, monotonic, fields.pop("offset", None))
        return Line(number, fields.pop("event"), fields.pop("run"), at, fields)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        return None


class RecordedTasks:
    """Reads recorded tasks, which name messages by their ids, with the messages seen so far."""

    def __init__(self, begin: Line) -> None:
        self._messages_by_id: dict[int, AnalystMessage] = {}
        fields = begin.more["fields"]
        self._learn(read_entries(begin, fields.get("departed", ())))
        self._learn(read_entries(begin, [v for k, v in fields.items() if k.startswith("m:")]))

    def learn_messages(self, line: Line) -> None:
        """Remember the messages in the line."""
        if line.event == "received":
            messages = line.more["messages"]
            first = line.more["last_id"] - len(messages) + 1
            self._learn(
                BufferedMessage(first + i, read_message(message), line.at) for i, message in enumerate(messages)
            )
        elif line.event == "revised":
            for one in map(read_revision, line.more["revisions"]):
                self._learn_revision(one)
        elif line.event == "task_started":
            self._learn(read_entries(line, line.more.get("entries", ())))

    def _learn_revision(self, revision: Revision) -> None:
        said = self._messages_by_id
        if isinstance(revision, Correction) and revision.id in said:
            text = said[revision.id].text if revision.text is None else revision.text
            said[revision.id] = replace(said[revision.id], text=text, speaker=revision.speaker)
        elif isinstance(revision, SpeakerRename):
            renamed = {
                one.id: replace(one, speaker=revision.new) for one in said.values() if one.speaker == revision.old
            }
            said.update(renamed)

    def keywords(self, line: Line) -> KeywordTask:
        return KeywordTask([replace(said, before=self._before(said)) for said in self._messages(line)])

    def domains(self, line: Line) -> DomainTask:
        return DomainTask(self._messages(line), line.more["through"], line.more["new"])

    def summary(self, line: Line) -> SummaryRequest:
        return SummaryRequest(self._messages(line), read_known(line.more["known"]), line.more["topic_keywords"])

    def _messages(self, line: Line) -> list[AnalystMessage]:
        return [self._messages_by_id[message_id] for message_id in line.more["ids"]]

    def _before(self, said: AnalystMessage) -> list[AnalystMessage]:
        earlier = range(said.id - KEYWORD_CONTEXT, said.id)
        return [self._messages_by_id[message_id] for message_id in earlier if message_id in self._messages_by_id]

    def _learn(self, entries: Iterable[BufferedMessage]) -> None:
        self._messages_by_id.update((entry.id, entry.for_analyst()) for entry in entries)


def read_entries(line: Line, written: Iterable[Any]) -> list[BufferedMessage]:
    """Return entries of the checkpoint or of the pending list, as they were at the line's moment."""
    return [BufferedMessage.decode(orjson.dumps(entry), line.at) for entry in written]
