"""The lines of a recording, written and read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from secrets import token_hex
from typing import Any, Final

import orjson
from pydantic import TypeAdapter

from context_builder.analysis.analyst import DomainResult, KeywordResult, KnownPoint, SummaryResult, Usage
from context_builder.clock import Instant
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.tasks import AnalysisResult, AnalysisTask, DomainTask, SummaryTask
from context_builder.session.messages.message import Message
from context_builder.session.recorder import (
    DeadLettered,
    DeliveriesRejected,
    Received,
    SessionEvent,
    TaskFinished,
    TaskStarted,
    Turned,
)
from context_builder.session.store.commit import Snapshot

SCHEMA: Final = 1

_READINGS: Final[Mapping[str, TypeAdapter[Any]]] = {
    "keywords": TypeAdapter(KeywordResult),
    "domains": TypeAdapter(DomainResult),
    "summary": TypeAdapter(SummaryResult),
}
_USAGE: Final = TypeAdapter(Usage)
_KNOWN: Final = TypeAdapter(list[KnownPoint])
_MESSAGE: Final = tuple(name for name in (f.name for f in fields(Message)) if name not in ("identity", "timestamp_raw"))
_RULES: Final = frozenset(field.name for field in fields(SessionConfig))


class Encoder:
    """Writes the lines of one run, numbering the work that is handed out."""

    def __init__(self) -> None:
        self._run = token_hex(4)
        self._works: dict[int, tuple[int, AnalysisTask]] = {}
        self._count = 0

    def begin(self, session_id: str, rules: SessionConfig, tokens: str, snapshot: Snapshot, now: Instant) -> bytes:
        header = {
            "schema": SCHEMA,
            "version": _version(),
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
            case DeliveriesRejected(count):
                return self._line("buried", now, {"count": count})
            case DeadLettered(receiver, count):
                return self._line("refused", now, {"receiver": receiver, "count": count})
            case TaskStarted(task, work):
                return self._line("handed_out", now, {"task": task, **self._handed_out(work)})
            case TaskFinished(work, reading, usage):
                number, _ = self._works.pop(id(work))
                return self._line("answered", now, {"work": number, "reading": reading, "usage": usage})
            case Turned(to):
                return self._line("turned", now, {"to": to})

    def published(self, revision: int, state_digest: str, now: Instant) -> bytes:
        return self._line("published", now, {"revision": revision, "state": state_digest})

    def _handed_out(self, work: AnalysisTask | None) -> dict[str, Any]:
        if work is None:
            return {"work": None}
        self._count += 1
        self._works[id(work)] = (self._count, work)  # holding the work keeps its id from being given again
        described: dict[str, Any] = {"work": self._count, "ids": ids_of(work)}
        if isinstance(work, DomainTask):
            described |= {"through": work.through, "new": work.new}
        if isinstance(work, SummaryTask):
            described |= {"known": work.request.known, "topic_keywords": work.request.topic_keywords}
            if work.from_pending:
                described["entries"] = [orjson.Fragment(entry.encode()) for entry in work.entries]
        return described

    def _line(self, event: str, now: Instant, more: Mapping[str, Any]) -> bytes:
        line = {"event": event, "run": self._run, "at": (now.wall, now.monotonic), "offset": now.local_offset, **more}
        return orjson.dumps(line, default=_plain, option=orjson.OPT_APPEND_NEWLINE)


def digest(state: bytes) -> str:
    """What tells one published state from another."""
    return blake2b(state, digest_size=16).hexdigest()


def ids_of(work: AnalysisTask) -> list[int]:
    """The ids of the messages that the work is about."""
    messages = work.request.messages if isinstance(work, SummaryTask) else work.messages
    return [said.id for said in messages]


def read_message(written: Mapping[str, Any]) -> Message:
    """The message of a ``received`` line; its identity is not kept."""
    raw = written.get("timestamp_raw")
    if raw is None and "timestamp_raw" in written:
        raw = math.nan  # which JSON cannot carry; published as null like it
    return Message(**{name: written[name] for name in _MESSAGE}, identity=b"", timestamp_raw=raw)


def read_reading(task: str, written: Mapping[str, Any]) -> AnalysisResult:
    """The reading of an ``answered`` line."""
    reading: AnalysisResult = _READINGS[task].validate_python(written)
    return reading


def read_usage(written: Mapping[str, Any] | None) -> Usage | None:
    """What work without a reading cost, if anything."""
    return None if written is None else _USAGE.validate_python(written)


def read_known(written: Sequence[Mapping[str, Any]]) -> list[KnownPoint]:
    """The ledger's tail that a summary was asked for with."""
    return _KNOWN.validate_python(written)


def read_rules(written: Mapping[str, Any]) -> SessionConfig:
    """The rules of a ``begin`` line, those that this version knows."""
    return SessionConfig(**{name: value for name, value in written.items() if name in _RULES})


def _version() -> str:
    try:
        return version("context-builder")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "unknown"


def _fields(message: Message) -> dict[str, Any]:
    written = {name: getattr(message, name) for name in _MESSAGE}
    return written if message.timestamp_raw is None else {**written, "timestamp_raw": message.timestamp_raw}


def _plain(value: Any) -> Any:
    """Mappings and sequences of other kinds than JSON's own."""
    return dict(value) if isinstance(value, Mapping) else list(value)
