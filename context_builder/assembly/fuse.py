"""One list of candidates from several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from context_builder.assembly.candidate import Candidate


def fused(lists: Iterable[Sequence[Candidate]]) -> list[Candidate]:
    """Every candidate once: of those with the same id or the same text the most similar is kept, in first place.

    It remembers the origins of all of them.
    """
    kept: list[Candidate] = []
    places: dict[tuple[str, str], int] = {}
    for candidate in (candidate for candidates in lists for candidate in candidates):
        names = (("id", candidate.id), ("text", candidate.text.strip().casefold()))
        place = next((places[name] for name in names if name in places), None)
        if place is None:
            place = len(kept)
            kept.append(candidate)
        else:
            kept[place] = _merged(kept[place], candidate)
        for name in names:
            places.setdefault(name, place)
    return kept


def _merged(one: Candidate, other: Candidate) -> Candidate:
    better = other if other.base_score > one.base_score else one
    return replace(better, origins=tuple(dict.fromkeys((*one.origins, *other.origins))))
