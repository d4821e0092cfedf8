"""Something that may become part of a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from context_builder.memory.memory import Memory


class ContextType(StrEnum):
    """Tells the kind of a part of a context."""

    SYSTEM = "system"
    RECENT = "recent"
    SUMMARY = "summary"
    SEMANTIC = "semantic"
    USER_PREFERENCES = "user_preferences"


class Signal(NamedTuple):
    """One reason for a candidate's rank: ``weight`` times ``score`` (0..1) is its share of the score."""

    name: str
    weight: float
    score: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text that a source offers for a prompt.

    ``base_score`` is its similarity to the query as the source gave it (0..1), ``score`` what it is ranked by and
    ``signals`` what that is made of, once it was ranked. ``label`` says where it is from, in the prompt. ``role`` is
    that of a message. ``evidence`` is what sources measured of it beside its similarity, by name, each 0..1;
    ``projections`` are shorter texts that may stand for it, the longest first. ``memory`` is what it was made of, where
    it is from a memory store.
    """

    id: str
    text: str
    type: ContextType = ContextType.SEMANTIC
    base_score: float = 0.0
    score: float = 0.0
    label: str = ""
    role: str = "user"
    speaker: str | None = None
    time: datetime | None = None
    origins: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    signals: tuple[Signal, ...] = ()
    evidence: Mapping[str, float] = field(default_factory=dict)
    projections: tuple[str, ...] = ()
    memory: Memory | None = None

    def signal(self, name: str) -> float:
        """Return the score of the signal ``name``; 0 where the candidate was not ranked by it."""
        return next((one.score for one in self.signals if one.name == name), 0.0)
