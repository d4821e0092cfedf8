"""An extract shortens messages trimmed from a history, in their own words, so that they can be found again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from context_builder.assembly.retrieval.source import MemoryRecord
from context_builder.assembly.turn import Turn
from context_builder.quoting import quoted_line

KIND: Final = "session_summary"
TAGS: Final = ("session_summary", "auto", "context_builder")

_BETWEEN: Final = " | "


def extract(messages: Iterable[Mapping[str, Any]], longest: int = 1024) -> tuple[str, int]:
    """Return ``role: content | role: content …`` of the first messages, and their number, in ``longest`` characters.

    A message that would be cut is left to the next extract, unless it is too long for one by itself.
    """
    parts: list[str] = []
    length = taken = 0
    for message in messages:
        if words := words_of(message):
            part = f"{_unmarked(str(message.get('role', 'user')))}: {_unmarked(words)}"
            if parts and length + len(part) > longest:
                break
            parts.append(part)
            length += len(part) + len(_BETWEEN)
        taken += 1
    return _BETWEEN.join(parts)[:longest], taken


def _unmarked(text: str) -> str:
    """Return ``text`` on one line, in which nothing looks like the beginning of another message."""
    return quoted_line(text).replace(_BETWEEN.strip(), "¦")


def words_of(message: Mapping[str, Any]) -> str:
    """Return a message's text: its content, or the texts among the parts of it."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return " ".join(text for text in texts if isinstance(text, str)).strip()


def memory_record(turn: Turn, text: str, *, trimmed_from: int, trimmed_to: int, now: datetime) -> MemoryRecord:
    """Return the summary with the tags and metadata it is stored under."""
    return MemoryRecord(
        text=text,
        kind=KIND,
        tags=TAGS,
        metadata={"trimmed_from": trimmed_from, "trimmed_to": trimmed_to, "timestamp": now.isoformat()},
        tenant_id=turn.tenant_id,
        session_id=turn.session_id,
        persona_id=turn.persona_id,
        user_id=turn.user_id,
    )
