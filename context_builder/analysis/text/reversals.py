"""What is said later replaces what it reverses, settles or puts on another day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from context_builder.analysis.analyst import PointKind
from context_builder.analysis.text.days import days_in, without_days
from context_builder.analysis.text.exchanges import SAME_SUBJECT_NEAR, PointCandidate
from context_builder.analysis.text.phrases import Marker
from context_builder.analysis.text.replies import NEAR
from context_builder.analysis.text.statements import sameness
from context_builder.analysis.text.words import words

SAME_SUBJECT: Final = 0.45
"""Part of what one of two statements tells that the other tells too, when they are about the same."""

SAME_NUMBERED: Final = 0.1
"""The same for numbers of one speaker, of which the second corrects the first."""

SETTLES_WITHIN: Final = 12
"""Messages before a decision among which what it settles or decides anew was said."""


def without_reversed(candidates: Sequence[PointCandidate]) -> list[PointCandidate]:
    """Return the candidates without those that a later one reverses, settles or, being decided, says again."""
    kept: list[PointCandidate] = []
    for candidate in candidates:
        reversed_at = _reversed_by(candidate, kept)
        if reversed_at is not None:
            replaced = kept.pop(reversed_at)
            if replaced.kind is PointKind.DECISION and candidate.kind in (PointKind.PROPOSAL, PointKind.CLAIM):
                candidate = replace(candidate, kind=PointKind.DECISION)
        if candidate.kind is PointKind.DECISION:
            near = kept[-REMEMBERED_CANDIDATES:]
            kept[-REMEMBERED_CANDIDATES:] = [other for other in near if not _settles(candidate, other)]
        kept.append(candidate)
    return kept


_OPEN: Final = frozenset({PointKind.PROPOSAL, PointKind.DISAGREEMENT, PointKind.QUESTION})


def _settles(decided: PointCandidate, other: PointCandidate) -> bool:
    """Return whether a decision says all that was open, or what was decided but for another day."""
    if decided.order - other.order > SETTLES_WITHIN:
        return False
    if other.kind in _OPEN:
        return len(other.stems) > 1 and other.stems.keys() <= decided.stems.keys()
    return other.kind is PointKind.DECISION and _on_another_day(decided, other)


def _on_another_day(decided: PointCandidate, other: PointCandidate) -> bool:
    """Return whether two decisions say the same but for the day: word for word, or in other words where the second one
    is a conclusion ("Then ...").
    """
    said, before = decided.told[-1], other.told[-1]
    days, days_before = days_in(said.text), days_in(before.text)
    if not days or not days_before or days == days_before:
        return False
    rest, rest_before = (words(without_days(one.text)) for one in (said, before))
    if [word.lower for word in rest] == [word.lower for word in rest_before]:
        return True
    stems = [word.stem for word in rest if word.stem in said.stems]
    stems_before = [word.stem for word in rest_before if word.stem in before.stems]
    return Marker.CONCLUDES in said.markers and bool(stems) and stems == stems_before


REMEMBERED_CANDIDATES: Final = 40
"""Candidates before a reversal or a decision among which what it reverses or settles is looked for."""


def _numbers_of_one(candidate: PointCandidate, other: PointCandidate) -> bool:
    """Return whether one speaker says a number in both: "One twenty a day." "Sorry, I meant one fifty a day." """
    said, before = candidate.told[-1], other.told[-1]
    return said.has_number and before.has_number and said.speaker == before.speaker


_REVERSIBLE: Final = frozenset({PointKind.CLAIM, PointKind.DECISION, PointKind.PROPOSAL, PointKind.ACTION})


def _reversed_by(candidate: PointCandidate, before: Sequence[PointCandidate]) -> int | None:
    if not candidate.reverses:
        return None
    best: tuple[float, int] | None = None
    for place in range(len(before) - 1, max(-1, len(before) - 1 - REMEMBERED_CANDIDATES), -1):
        other = before[place]
        if other.kind not in _REVERSIBLE:
            continue
        is_near = candidate.order - other.order <= NEAR
        least = SAME_SUBJECT_NEAR if is_near else SAME_SUBJECT
        if is_near and _numbers_of_one(candidate, other):
            least = SAME_NUMBERED
        same = sameness(candidate.stems, other.stems)
        if same >= least and (best is None or same > best[0]):
            best = (same, place)
    return None if best is None else best[1]
