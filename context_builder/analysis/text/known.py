"""What was said now may answer, accept or reverse what the summary has already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from context_builder.analysis.analyst import KnownPoint, PointKind
from context_builder.analysis.text.days import days_in
from context_builder.analysis.text.exchanges import PointCandidate
from context_builder.analysis.text.replies import REPLIES_WITHIN
from context_builder.analysis.text.reversals import SAME_SUBJECT
from context_builder.analysis.text.statements import Statement, known_statement, sameness, stems_of, tells_exchange
from context_builder.analysis.text.words import words
from context_builder.quoting import quoted_name

ANSWERS: Final = 0.75
"""Part of what a known question tells that its answer tells too."""

SHARED_STEMS: Final = 2
"""Least words that an answer shares with a known question that was asked long before."""

SPECIFIC: Final = 0.5
"""Specificity that one of the shared words has at least."""

_TALKED_OF: Final = frozenset({PointKind.CLAIM, PointKind.DECISION, PointKind.PROPOSAL, PointKind.ACTION})


class KnownSubjects:
    """The known points; at most one new point takes the place of each."""

    def __init__(self, known: Sequence[KnownPoint]) -> None:
        self._known = {point.id: (point, stems_of(words(point.text), point.text)) for point in known}
        self.stems = {stem for _, stems in self._known.values() for stem in stems}

    def open_before(self, message: int) -> list[Statement]:
        """Return the questions and proposals that were left open by the messages just before ``message``."""
        found: list[Statement] = []
        for point, _ in self._known.values():
            said = max((quote.message for quote in point.evidence), default=message - REPLIES_WITHIN)
            if point.kind in (PointKind.QUESTION, PointKind.PROPOSAL) and 0 < message - said < REPLIES_WITHIN:
                found.append(known_statement(point, said - message))
        return sorted(found, key=lambda statement: statement.order)

    def settled(self, candidate: PointCandidate) -> PointCandidate:
        """Return the candidate, with the known point that it replaces, if any."""
        if candidate.replaces is not None:
            self._known.pop(candidate.replaces, None)
            return candidate
        if candidate.reverses:
            replaced = self._nearest(candidate, _TALKED_OF, SAME_SUBJECT)
        elif candidate.kind is PointKind.DECISION:
            replaced = self._nearest(candidate, {PointKind.PROPOSAL, PointKind.QUESTION}, ANSWERS)
        elif candidate.kind is PointKind.CLAIM:
            replaced = self._nearest(candidate, {PointKind.QUESTION}, ANSWERS)
        else:
            return candidate
        if replaced is None:
            return candidate
        del self._known[replaced.id]
        if (
            replaced.kind is PointKind.QUESTION
            and candidate.kind is PointKind.CLAIM
            and not _tells(candidate, replaced)
        ):
            return replace(candidate, replaces=replaced.id, asked=_asked(replaced))
        return replace(candidate, replaces=replaced.id)

    def decided(self) -> list[Mapping[str, float]]:
        """Return what the decisions tell, by their stems."""
        return [stems for point, stems in self._known.values() if point.kind is PointKind.DECISION]

    def first(
        self,
        may_be: Callable[[PointKind, Sequence[str]], bool],
        place_among: Callable[[Iterable[tuple[frozenset[str], frozenset[str]]]], int | None],
    ) -> KnownPoint | None:
        """Return the point that ``may_be`` it, whose place is chosen among the days and stems of all, newest first."""
        points = [(point, stems) for point, stems in reversed(self._known.values()) if may_be(point.kind, point.by)]
        place = place_among((frozenset(days_in(point.text)), frozenset(stems)) for point, stems in points)
        return None if place is None else points[place][0]

    def _nearest(
        self, candidate: PointCandidate, kinds: frozenset[PointKind] | set[PointKind], least: float
    ) -> KnownPoint | None:
        best: tuple[float, int] | None = None
        for point, stems in self._known.values():
            shared = [weight for stem, weight in stems.items() if stem in candidate.stems]
            if point.kind not in kinds or len(shared) < SHARED_STEMS or max(shared) < SPECIFIC:
                continue
            total = sum(stems.values())
            same = (
                sum(shared) / total if point.kind is PointKind.QUESTION and total else sameness(candidate.stems, stems)
            )
            if same >= least and (best is None or same >= best[0]):
                best = (same, point.id)
        return None if best is None else self._known[best[1]][0]


def _tells(candidate: PointCandidate, question: KnownPoint) -> bool:
    return question.text in candidate.text


def _asked(question: KnownPoint) -> str:
    """Return a known question as an exchange begins with it."""
    if tells_exchange(question) or not question.by:
        return question.text
    return f"{', '.join(map(quoted_name, question.by))}: {question.text}"
