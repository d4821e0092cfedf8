"""The ranking signals: why one candidate is worth more to a prompt than another.

A signal is a class with a ``name``, a ``weight`` and ``score(candidate, query)``; :func:`ranking_signals` lists them.
Receipts, ``build --explain`` and the snippets of a prompt show every signal of that list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final, Protocol

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.config import AssemblyConfig
from context_builder.timestamps import moment

UNKNOWN_RECENCY: Final = 0.5
"""Recency of a memory without a time, or with one that cannot be read."""

_DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class RankingQuery:
    """Holds what candidates are ranked for: the query's text, and the time of the build, with a time zone."""

    text: str
    now: datetime


class RankingSignal(Protocol):
    """Scores candidates from 0 to 1, purely: without a clock and without I/O."""

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> float:
        """Return how much the score counts."""
        ...

    def score(self, candidate: Candidate, query: RankingQuery) -> float: ...


@dataclass(frozen=True, slots=True)
class Similarity:
    """Scores by the similarity that the source gave, clamped to 0..1; what is no number counts as 0."""

    weight: float
    name: ClassVar[str] = "similarity"

    def score(self, candidate: Candidate, query: RankingQuery) -> float:
        return similarity(candidate)


@dataclass(frozen=True, slots=True)
class Recency:
    """Scores ``exp(-age / days)`` of the metadata's ``timestamp`` or ``created_at``: 1 now, 0.37 after ``days``."""

    weight: float
    days: float = 30.0
    name: ClassVar[str] = "recency"

    def score(self, candidate: Candidate, query: RankingQuery) -> float:
        return recency(candidate.metadata, query.now, self.days)


@dataclass(frozen=True, slots=True)
class Helpfulness:
    """Scores how much the candidate helped before, from 0 to 1; 0.5 where nobody said; fades as recency does."""

    weight: float
    days: float = 30.0
    name: ClassVar[str] = "feedback"

    def score(self, candidate: Candidate, query: RankingQuery) -> float:
        feedback = candidate.metadata.get("feedback")
        score = feedback.get("score") if isinstance(feedback, Mapping) else None
        if feedback is None or not isinstance(score, int | float) or not 0 <= score <= 1:
            return 0.5
        return 0.5 + (score - 0.5) * recency(feedback, query.now, self.days)


def ranking_signals(config: AssemblyConfig) -> tuple[RankingSignal, ...]:
    """Return the signals that candidates are ranked by, weighted as ``config`` says."""
    signals: list[RankingSignal] = [
        Similarity(config.similarity_weight),
        Recency(config.recency_weight, config.recency_days),
    ]
    if config.feedback_weight:
        signals.append(Helpfulness(config.feedback_weight, config.recency_days))
    return tuple(signals)


def similarity(candidate: Candidate) -> float:
    """Return the candidate's ``base_score`` clamped to 0..1; what is no number comes to 0."""
    return min(1.0, max(0.0, candidate.base_score))


def recency(metadata: Mapping[str, Any], now: datetime, days: float = 30.0) -> float:
    """Return ``exp(-age / days)`` of the metadata's time; ``days`` is the e-folding time: half-life by ln 2.

    What lies ahead counts as now.
    """
    time = moment(metadata.get("timestamp") or metadata.get("created_at"))
    if time is None:
        return UNKNOWN_RECENCY
    return math.exp(-max(0.0, (now - time).total_seconds() / _DAY) / days)
