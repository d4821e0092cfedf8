"""Candidates with their score, the best first."""

from __future__ import annotations

from collections.abc import Sequence

from context_builder.assembly.candidate import Candidate, Signal
from context_builder.assembly.ranking.signals import RankingQuery, RankingSignal


def score_candidates(
    candidates: Sequence[Candidate], query: RankingQuery, signals: Sequence[RankingSignal]
) -> list[Candidate]:
    """Return the candidates with their signals and ``score``, the signals' weighted sum."""
    weighted = [(signal.name, signal.weight, signal.score) for signal in signals]
    scored = []
    for one in candidates:
        told, total = [], 0.0
        for name, weight, score in weighted:
            value = score(one, query)
            total += weight * value
            told.append(Signal(name, weight, value))
        scored.append(one.ranked(total, tuple(told)))
    return scored


def ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates, best first; equals stay in the order their source gave them."""
    return sorted(candidates, key=lambda candidate: -candidate.score)
