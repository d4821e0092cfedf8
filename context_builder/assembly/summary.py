"""What was trimmed from a history, in short: its own words, so that it can be found again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from context_builder.assembly.recollection import Recollection
from context_builder.assembly.turn import Turn

KIND: Final = "session_summary"
TAGS: Final = ("session_summary", "auto", "context_builder")


def extract(messages: Iterable[Mapping[str, Any]], longest: int = 1024) -> str:
    """``role: content | role: content …`` of the messages, oldest first, at most ``longest`` characters."""
    parts: list[str] = []
    length = 0
    for message in messages:
        content = message.get("content")
        said = content.strip() if isinstance(content, str) else ""
        if said:
            parts.append(f"{message.get('role', 'user')}: {said}")
            length += len(parts[-1]) + 3
        if length > longest:
            break
    return " | ".join(parts)[:longest]


def recollection(turn: Turn, text: str, *, trimmed_from: int, trimmed_to: int, now: datetime) -> Recollection:
    """The summary with the tags and metadata it is stored under."""
    return Recollection(
        text=text,
        kind=KIND,
        tags=TAGS,
        metadata={"trimmed_from": trimmed_from, "trimmed_to": trimmed_to, "timestamp": now.isoformat()},
        tenant_id=turn.tenant_id,
        session_id=turn.session_id,
        persona_id=turn.persona_id,
        user_id=turn.user_id,
    )
