"""Memories are converted here to and from the rows of the SQL functions.

Words are taken to their stems in the language of their text, so that "Häuser" finds "Haus"; where it is not known, the
stems are English's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from context_builder.clock import in_utc
from context_builder.language import language_of
from context_builder.memory.memory import Memory, MemoryFeedback, MemoryFilter, Rating, SearchResult

Row = dict[str, Any]

KEY_CHARS: Final = 200
"""Longest name that is a key as it stands: PostgreSQL refuses rows whose index entries exceed some 2,700 bytes."""


def storable(value: Any) -> Any:
    """Return ``value`` as PostgreSQL's JSON holds it: no NUL, no half of a surrogate pair, no infinite number."""
    kind = type(value)
    if kind is str and value.isascii() and "\x00" not in value:
        return value  # as nearly everything is
    if value is None or kind is int or kind is bool:
        return value
    if kind is dict:
        return {storable(str(name)): storable(item) for name, item in value.items()}
    match value:
        case str():
            return value.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
        case float():
            return value if math.isfinite(value) else None
        case int():
            return value
        case list() | tuple() | set() | frozenset():
            return [storable(item) for item in value]
        case datetime():
            return value.isoformat()
        case Mapping():
            return storable(dict(value))
        case _:
            return storable(str(value))


def embedding_text(memory: Memory) -> str:
    """Return the text that is embedded: speaker, time and words."""
    day = f"[{in_utc(memory.time):%d %B %Y}]" if memory.time is not None else ""
    said = f"{memory.speaker}: {memory.text}" if memory.speaker else memory.text
    return storable(f"{day} {said}".strip())  # type: ignore[no-any-return]


def digest(text: str) -> str:
    """Return the digest by which an embedded text is recognized."""
    return sha256(text.encode()).hexdigest()


def as_key(name: str | None) -> str | None:
    """Return a user's or session's name as it is indexed: a long one is shortened to a beginning and a digest.

    Of one that is too long, or that PostgreSQL cannot hold, it is the beginning and a digest of all of it.
    """
    if name is None or (len(name) <= KEY_CHARS and name == storable(name)):
        return name
    told_apart_by = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{storable(name[: KEY_CHARS - len(told_apart_by) - 1])} {told_apart_by}".lstrip()


def as_row(memory: Memory) -> Row:
    """Return the row of table ``context_memories``, without embedding."""
    row: Row = storable(
        {
            "id": memory.id,
            "kind": memory.kind,
            "session_id": as_key(memory.session_id),
            "user_id": as_key(memory.user_id),
            "speaker": memory.speaker,
            "said_at": memory.time and in_utc(memory.time),
            "position": memory.position,
            "tags": memory.tags,
            "metadata": memory.metadata,
            "text": memory.text,
            "language": language_of(memory.text),
        }
    )
    return row | {"digest": digest(embedding_text(memory))}


def as_condition(where: MemoryFilter) -> Row:
    """Return the filter as the SQL functions read it; empty conditions are left out."""
    restricting = {
        "session_id": as_key(where.session_id),
        "user_id": as_key(where.user_id),
        "persona_id": where.persona_id,
        "kinds": where.kinds or None,
        "tags": where.tags or None,
        "since": where.since and in_utc(where.since),
        "until": where.until and in_utc(where.until),
        "with_unowned": where.with_unowned or None,
        "speaker": where.speaker,
        "ids": where.ids or None,
        "without_sessions": tuple(map(as_key, where.without_sessions)) or None,
        "without_kinds": where.without_kinds or None,
        "sensitivities": where.sensitivities or None,
    }
    return {name: storable(value) for name, value in restricting.items() if value is not None}


def found_of(rows: Sequence[Row]) -> list[SearchResult]:
    """Return the search result in a row of ``context_memory_search``."""
    return [
        SearchResult(
            _memory(row["memory"]),
            float(row["score"]),
            tuple(row["origins"]),
            _feedback(row["memory"]),
            float(row.get("seed") or 0.0),
        )
        for row in rows
    ]


def rating_rows(ratings: Sequence[Rating]) -> list[Row]:
    """Return the rows ``context_memory_rate`` takes; of several ratings of a memory by a user the last."""
    last = {(rating.id, rating.user_id): rating for rating in ratings}
    return [
        storable({"id": one.id, "user_id": one.user_id, "score": one.score, "timestamp": in_utc(one.time)})
        for one in last.values()
    ]


def _memory(row: Row) -> Memory:
    time = datetime.fromisoformat(said_at) if (said_at := row.get("said_at")) else None
    return Memory(
        id=row["id"],
        text=row["text"],
        kind=row["kind"],
        session_id=row["session_id"],
        user_id=row.get("user_id"),
        speaker=row.get("speaker"),
        position=row["position"],
        time=time,
        tags=tuple(row.get("tags", ())),
        metadata=row["metadata"] if isinstance(row["metadata"], dict) else {},
    )


def _feedback(row: Row) -> MemoryFeedback | None:
    feedback: Any = row.get("feedback")
    try:
        return MemoryFeedback(
            float(feedback["score"]), int(feedback["count"]), datetime.fromisoformat(feedback["timestamp"])
        )
    except (KeyError, OverflowError, TypeError, ValueError):  # there is none, or somebody else wrote it
        return None
