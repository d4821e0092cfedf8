"""What a memory is worth: how similar it is to the query, and how fresh."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.config import AssemblyConfig
from context_builder.timestamps import moment

UNKNOWN_RECENCY: Final = 0.5
"""Of a memory without a time, or with one that cannot be read."""

_DAY: Final = 86_400.0


def score_candidates(candidates: Sequence[Candidate], now: datetime, rules: AssemblyConfig) -> list[Candidate]:
    """The candidates with ``score`` = 0.7 · similarity + 0.3 · recency; ``now`` has a time zone.

    Where the rules give feedback a weight, what helped before is worth more by it, and what did not, less.
    """
    return [_scored(candidate, now, rules) for candidate in candidates]


def ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Best first; equals stay in the order the memory gave them."""
    return sorted(candidates, key=lambda candidate: -candidate.score)


def recency(metadata: Mapping[str, Any], now: datetime, days: float = 30.0) -> float:
    """``exp(-age / days)`` of the metadata's ``timestamp`` or ``created_at``: 1 now, 0.37 after 30 days.

    ``days`` is the e-folding time; the half-life is ln 2 of it, 21 days. What lies ahead counts as now.
    """
    time = moment(metadata.get("timestamp") or metadata.get("created_at"))
    if time is None:
        return UNKNOWN_RECENCY
    age = max(0.0, (now - time).total_seconds() / _DAY)
    return math.exp(-age / days)


def helped(metadata: Mapping[str, Any], now: datetime, days: float = 30.0) -> float:
    """How much it helped before: -1 not at all, 1 very much, 0 when nobody said. It fades as memories do."""
    told = metadata.get("feedback")
    score = told.get("score") if isinstance(told, Mapping) else None
    if not isinstance(score, int | float) or not 0 <= score <= 1:
        return 0.0
    return (2 * score - 1) * recency(told or {}, now, days)


def _scored(candidate: Candidate, now: datetime, rules: AssemblyConfig) -> Candidate:
    fresh = recency(candidate.metadata, now, rules.recency_days)
    similarity = min(1.0, max(0.0, candidate.base_score))  # memories may give anything; what is no number comes to 0
    score = rules.similarity_weight * similarity + rules.recency_weight * fresh
    told = helped(candidate.metadata, now, rules.recency_days) if rules.feedback_weight else 0.0
    score += rules.feedback_weight * told
    return candidate.scored(similarity, fresh, told, score)
