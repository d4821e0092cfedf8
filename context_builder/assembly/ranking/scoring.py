"""Candidates are deduplicated and scored here, the best first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from context_builder.assembly.candidate import Candidate, Signal
from context_builder.assembly.ranking.signals import RankingQuery, RankingSignal


def score_candidates(
    candidates: Sequence[Candidate], query: RankingQuery, signals: Sequence[RankingSignal]
) -> list[Candidate]:
    """Return the candidates with their signals and ``score``, the signals' weighted sum."""
    weighted = [(signal.name, signal.weight, signal.score) for signal in signals]
    scored = []
    for one in candidates:
        scores, total = [], 0.0
        for name, weight, score in weighted:
            value = score(one, query)
            total += weight * value
            scores.append(Signal(name, weight, value))
        scored.append(one.ranked(total, tuple(scores)))
    return scored


def ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates, best first; equals stay in the order their source gave them."""
    return sorted(candidates, key=lambda candidate: -candidate.score)


def deduplicate(candidates: Iterable[Candidate], *, by_text: bool = True) -> tuple[list[Candidate], list[Candidate]]:
    """Return every candidate once, and the others: of those with the same id (or, ``by_text``, text), the most similar
    one is kept, in first place, with the origins and the evidence of all of them.
    """
    kept: list[Candidate] = []
    merged: list[Candidate] = []
    places: dict[tuple[str, str], int] = {}
    for candidate in candidates:
        names = [("id", candidate.id)]
        if by_text:
            names.append(("text", candidate.text.strip().casefold()))
        place = next((places[name] for name in names if name in places), None)
        if place is None:
            place = len(kept)
            kept.append(candidate)
        else:
            better, other = _by_similarity(kept[place], candidate)
            origins = tuple(dict.fromkeys((*kept[place].origins, *candidate.origins)))
            kept[place] = replace(better, origins=origins, evidence=_most(better.evidence, other.evidence))
            merged.append(other)
        for name in names:
            places.setdefault(name, place)
    return kept, merged


def _most(one: Mapping[str, float], other: Mapping[str, float]) -> Mapping[str, float]:
    """Return the higher of both measures, by name."""
    if not other:
        return one
    return {name: max(one.get(name, 0.0), other.get(name, 0.0)) for name in (*one, *other)}


def _by_similarity(one: Candidate, other: Candidate) -> tuple[Candidate, Candidate]:
    """Return the better one first; the earlier one of equals."""
    return (other, one) if other.base_score > one.base_score else (one, other)
