"""SomaBrain's answers are read in this one place, for memories and for candidates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from context_builder.clock import moment

_TEXT_KEYS: Final = ("text", "content", "value")


@dataclass(frozen=True, slots=True)
class SomaBrainEntry:
    """An entry of an answer; it always has a text.

    ``place`` counts the answer's entries from 0, ``score`` is None where the entry has no finite number for it, and
    ``metadata`` is the caller's own copy.
    """

    place: int
    text: str
    id: str | None
    kind: str | None
    score: float | None
    time: datetime | None
    metadata: dict[str, Any]


def read_entries(answer: object) -> Iterator[SomaBrainEntry]:
    """Yield the entries of ``candidates[]`` and ``results[]``; those without a text are passed over."""
    for place, entry in enumerate(_mappings(answer)):
        text = next((entry[key] for key in _TEXT_KEYS if isinstance(entry.get(key), str) and entry[key].strip()), None)
        if text is None:
            continue
        held = entry.get("metadata")
        metadata = dict(held) if isinstance(held, Mapping) else {}
        yield SomaBrainEntry(
            place,
            text,
            id=None if entry.get("id") is None else str(entry["id"]),
            kind=str(entry["type"]) if entry.get("type") else None,
            score=_finite(entry.get("score")),
            time=moment(metadata.get("timestamp") or metadata.get("created_at")),
            metadata=metadata,
        )


def _mappings(answer: object) -> Iterator[Mapping[str, Any]]:
    if not isinstance(answer, Mapping):
        return
    for key in ("candidates", "results"):
        found = answer.get(key)
        if isinstance(found, list | tuple):
            yield from (entry for entry in found if isinstance(entry, Mapping))


def _finite(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
