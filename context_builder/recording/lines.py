"""The lines of a recording are written and read here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from hashlib import blake2b
from secrets import token_hex
from typing import Any, Final

import orjson
from pydantic import TypeAdapter

from context_builder import __version__
from context_builder.analysis.analyst import CompactionResult, DomainResult, KeywordResult, KnownPoint, SummaryResult
from context_builder.clock import Instant
from context_builder.costs import Usage
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.tasks import (
    AnalysisResult,
    AnalysisTask,
    CompactionTask,
    DomainTask,
    SummaryTask,
)
from context_builder.session.messages.message import Message
from context_builder.session.messages.revision import Correction, Revision, SpeakerRename, Strike
from context_builder.session.recorder import (
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
