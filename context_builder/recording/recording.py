"""A recording's lines are written and read here, one by one, however many there are.

Its tasks are read so that they can be done again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import orjson
from pydantic import TypeAdapter

from context_builder import __version__
from context_builder.analysis.analyst import (
    AnalystMessage,
    CompactionResult,
    DomainResult,
    KeywordResult,
    KnownPoint,
    SummaryRequest,
    SummaryResult,
)
from context_builder.clock import Instant
from context_builder.costs import Usage
from context_builder.errors import RecordingError
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.conversation import KEYWORD_CONTEXT
from context_builder.session.conversation.tasks import (
    AnalysisResult,
    AnalysisTask,
    CompactionTask,
    DomainTask,
    KeywordTask,
    SummaryTask,
)
from context_builder.session.events import (
    Charged,
    DeadLettered,
    DeliveriesRejected,
    PhaseChanged,
    Received,
    Revised,
    SessionEvent,
    TaskFinished,
    TaskStarted,
)
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.messages.message import Message
from context_builder.session.messages.revision import Correction, Revision, SpeakerRename, Strike
from context_builder.session.store.recovery import StoredSession

SCHEMA: Final = 1

_RESULTS: Final[Mapping[str, TypeAdapter[Any]]] = {
    "keywords": TypeAdapter(KeywordResult),
    "domains": TypeAdapter(DomainResult),
    "summary": TypeAdapter(SummaryResult),
    "compaction": TypeAdapter(CompactionResult),
}
_USAGE: Final = TypeAdapter(Usage)
_KNOWN: Final = TypeAdapter(list[KnownPoint])
_NOT_RECORDED: Final = frozenset({"identity", "timestamp_raw", "stamp", "corrects"})
_MESSAGE: Final = tuple(f.name for f in fields(Message) if f.name not in _NOT_RECORDED)
_REVISIONS: Final[Mapping[str, TypeAdapter[Any]]] = {
    "correction": TypeAdapter(Correction),
    "strike": TypeAdapter(Strike),
    "rename": TypeAdapter(SpeakerRename),
}
_END_OF_TIME: Final = 253_402_300_800.0
"""Epoch second of the year 10000, which no date has."""

_RULES: Final = frozenset(field.name for field in fields(SessionConfig))


class Encoder:
    """Writes the lines of one run, numbering the tasks that are started."""

    def __init__(self) -> None:
        self._run = token_hex(4)
        self._tasks: dict[int, tuple[int, AnalysisTask]] = {}
        self._count = 0

    def begin(self, session_id: str, rules: SessionConfig, tokens: str, snapshot: StoredSession, now: Instant) -> bytes:
        header = {
            "schema": SCHEMA,
            "version": __version__,
            "session_id": session_id,
            "tokens": tokens,
            "rules": asdict(rules),
            "revision": snapshot.revision,
            "pending": snapshot.pending,
            "fields": {name: orjson.Fragment(value) for name, value in snapshot.fields.items()},
        }
        return self._line("begin", now, header)

    def happened(self, what: SessionEvent, now: Instant) -> bytes:
        match what:
            case Received(messages, last_id):
                return self._line("received", now, {"messages": [_fields(m) for m in messages], "last_id": last_id})
            case Revised(revisions):
                return self._line("revised", now, {"revisions": [_described(one) for one in revisions]})
            case DeliveriesRejected(count):
                return self._line("deliveries_rejected", now, {"count": count})
            case DeadLettered(receiver, count):
                return self._line("dead_lettered", now, {"receiver": receiver, "count": count})
            case Charged(task_name, usage):
                return self._line("charged", now, {"task": task_name, "usage": usage})
            case TaskStarted(kind, task):
                return self._line("task_started", now, {"kind": kind, **self._described(task)})
            case TaskFinished(task, result, usage, reason):
                if id(task) not in self._tasks:  # started before the recording began anew
                    return b""
                number, _ = self._tasks.pop(id(task))
                told = {"task": number, "result": result, "usage": usage}
                return self._line("task_finished", now, told | ({"reason": reason} if reason else {}))
            case PhaseChanged(phase):
                return self._line("phase_changed", now, {"phase": phase})

    def published(self, revision: int, state_digest: str, now: Instant) -> bytes:
        return self._line("published", now, {"revision": revision, "state": state_digest})

    def _described(self, task: AnalysisTask | None) -> dict[str, Any]:
        if task is None:
            return {"task": None}
        self._count += 1
        self._tasks[id(task)] = (self._count, task)  # holding the task keeps its id from being given again
        described: dict[str, Any] = {"task": self._count, "ids": ids_of(task)}
        if isinstance(task, DomainTask):
            described |= {"through": task.through, "new": task.new}
        if isinstance(task, SummaryTask):
            described |= {"known": task.request.known, "topic_keywords": task.request.topic_keywords}
            if task.from_pending:
                described["entries"] = [orjson.Fragment(entry.encode()) for entry in task.entries]
        return described

    def _line(self, event: str, now: Instant, more: Mapping[str, Any]) -> bytes:
        line = {"event": event, "run": self._run, "at": (now.wall, now.monotonic), "offset": now.local_offset, **more}
        return orjson.dumps(line, default=_plain, option=orjson.OPT_APPEND_NEWLINE)


def digest(state: bytes) -> str:
    """Return a digest that tells one published state from another."""
    return blake2b(state, digest_size=16).hexdigest()


def ids_of(task: AnalysisTask) -> list[int]:
    """Return the ids of the messages, or points, that the task is about."""
    if isinstance(task, CompactionTask):
        return [point.id for point in task.request.points]
    messages = task.request.messages if isinstance(task, SummaryTask) else task.messages
    return [said.id for said in messages]


def read_message(written: Mapping[str, Any]) -> Message:
    """Return the message of a ``received`` line; its identity is not kept."""
    raw = written.get("timestamp_raw")
    if raw is None and "timestamp_raw" in written:
        raw = math.nan  # which JSON cannot carry; published as null like it
    return Message(**{name: written[name] for name in _MESSAGE}, identity=b"", timestamp_raw=raw)


def _described(revision: Revision) -> dict[str, Any]:
    match revision:
        case Correction():
            return {"what": "correction", **{f.name: getattr(revision, f.name) for f in fields(Correction)}}
        case Strike(entry_id, origin):
            return {"what": "strike", "id": entry_id, "origin": origin}
        case SpeakerRename(old, new):
            return {"what": "rename", "old": old, "new": new}


def read_revision(written: Mapping[str, Any]) -> Revision:
    """Return a revision of a ``revised`` line."""
    told = {name: value for name, value in written.items() if name != "what"}
    revision: Revision = _REVISIONS[written["what"]].validate_python(told)
    return revision


def read_result(kind: str, written: Mapping[str, Any]) -> AnalysisResult:
    """Return the result of a ``task_finished`` line, of a task of ``kind``."""
    result: AnalysisResult = _RESULTS[kind].validate_python(written)
    return result


def read_usage(written: Mapping[str, Any] | None) -> Usage | None:
    """Return what a task without a result cost, if anything."""
    return None if written is None else _USAGE.validate_python(written)


def read_known(written: Sequence[Mapping[str, Any]]) -> list[KnownPoint]:
    """Return the ledger's tail that a summary was asked for with."""
    return _KNOWN.validate_python(written)


def read_rules(written: Mapping[str, Any]) -> SessionConfig:
    """Return the rules of a ``begin`` line that this version knows."""
    return SessionConfig(**{name: value for name, value in written.items() if name in _RULES})


def _fields(message: Message) -> dict[str, Any]:
    written = {name: getattr(message, name) for name in _MESSAGE}
    return written if message.timestamp_raw is None else {**written, "timestamp_raw": message.timestamp_raw}


def _plain(value: Any) -> Any:
    """Convert mappings and sequences of other kinds than JSON's own."""
    return dict(value) if isinstance(value, Mapping) else list(value)


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
        """Yield all lines in order. Raises :class:`RecordingError` when the file is not a recording."""
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
            raise RecordingError(f"{self.path}: is not a recording of a session")

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
        schema = begin.more.get("schema")
        if not isinstance(schema, int):
            raise RecordingError(f"{self.path}: line {begin.number} does not say how it was written")
        if schema > SCHEMA:
            raise RecordingError(
                f"{self.path}: was made by a newer version, {begin.more.get('version')}; upgrade to read it"
            )


def parse(number: int, raw: bytes) -> Line | None:
    """Return the line; None for one that was cut off or damaged."""
    try:
        fields = orjson.loads(raw)
        wall, monotonic = fields.pop("at")
        event, run = fields.pop("event"), fields.pop("run")
        if not (
            0 <= wall < _END_OF_TIME and abs(monotonic) < math.inf and isinstance(event, str) and isinstance(run, str)
        ):
            return None
        return Line(number, event, run, Instant(wall, monotonic, fields.pop("offset", None)), fields)
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
