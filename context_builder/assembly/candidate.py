"""Something that may become part of a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from context_builder.quoting import quoted_line, quoted_name
from context_builder.timestamps import day

UNNAMED: Final = "memory"
"""Where a memory is from that says nothing of it."""

LONGEST: Final = 80
"""Characters; a label is one short line, whatever it is made of."""

_KEYS: Final = ("label", "source", "speaker", "type")


def label_of(metadata: Mapping[str, Any], speaker: str | None = None, time: datetime | None = None) -> str:
    """``Alice, 2025-12-10`` of who spoke and when; else what the metadata names as its source; else :data:`UNNAMED`."""
    if speaker:
        return ", ".join(part for part in (quoted_name(speaker), day(time) if time else None) if part)
    return next((quoted_line(str(metadata[key]), LONGEST) for key in _KEYS if metadata.get(key)), UNNAMED)


class ContextType(StrEnum):
    """What a part of a context is."""

    SYSTEM = "system"
    RECENT = "recent"
    SUMMARY = "summary"
    SEMANTIC = "semantic"
    USER_PREFERENCES = "user_preferences"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text that a source offers.

    ``base_score`` is its similarity to the query as the source gave it, ``recency`` how fresh it is (both 0..1),
    ``feedback`` whether it helped before (-1..1, 0 when nobody said), ``score`` what it is ranked by.
    ``label`` says where it is from, in the prompt. ``role`` is that of a message.
    """

    id: str
    text: str
    type: ContextType = ContextType.SEMANTIC
    base_score: float = 0.0
    recency: float = 0.5
    feedback: float = 0.0
    score: float = 0.0
    label: str = ""
    role: str = "user"
    speaker: str | None = None
    time: datetime | None = None
    origins: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def scored(self, base_score: float, recency: float, feedback: float, score: float) -> Candidate:
        """The same with these scores. Every candidate of every turn is given them, and this is what takes least."""
        return Candidate(
            self.id, self.text, self.type, base_score, recency, feedback, score, self.label, self.role, self.speaker,
            self.time, self.origins, self.metadata,
        )  # fmt: skip

    def with_text(self, text: str) -> Candidate:
        """The same with another text."""
        return replace(self, text=text)
