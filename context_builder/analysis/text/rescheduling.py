"""Something that was settled is put on another day: "On Thursday she has an exam." "Then let's do Friday." """

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, NamedTuple

from context_builder.analysis.analyst import PointKind
from context_builder.analysis.text.days import days_in, is_moved, moves
from context_builder.analysis.text.exchanges import LONGEST_EXCHANGE, PointCandidate
from context_builder.analysis.text.known import KnownSubjects
from context_builder.analysis.text.phrases import Marker
from context_builder.analysis.text.pronouns import NAMED
from context_builder.analysis.text.statements import Statement

NEAR: Final = 8
"""Messages before the new day among which the old one was named again."""

LOOKED_AT: Final = 24
"""Statements before the new day that are looked at, however many a message has."""

REMEMBERED: Final = 200
"""Newest candidates with a day among which what was settled for the old one is looked for."""

MOVABLE: Final = frozenset({PointKind.CLAIM, PointKind.DECISION, PointKind.ACTION, PointKind.PROPOSAL})
_SETTLED: Final = frozenset({PointKind.DECISION, PointKind.ACTION})


@dataclass(frozen=True, slots=True)
class Rescheduling:
    """A candidate that puts something on another day, and the statement just before in which its old day is named."""

    candidate: PointCandidate
    recalled: Statement
    subjects: frozenset[str]
    """Stems that tell what it is about."""
    names: frozenset[str]
    """Stems by which the sentence with the new day names what it is about."""
    is_moved: bool
    """Whether somebody says that a day is changed."""

    @classmethod
    def each_of(cls, candidate: PointCandidate, statements: Sequence[Statement]) -> Iterator[Rescheduling]:
        """Yield how the candidate may put something on another day, by each statement that names the old one, the
        last first.

        The ``statements`` are in order.
        """
        said = candidate.told[-1]
        days = frozenset(days_in(said.text))
        own = frozenset(stem for stem, weight in said.stems.items() if weight >= NAMED) - days
        if len(days) != 1 or not _is_fixed(candidate) or (own and not _leads_on(said)):
            return
        begin = bisect_left(statements, said.order - NEAR, key=lambda one: one.order)
        end = next((at for at in range(begin, len(statements)) if statements[at] is said), begin)
        near = statements[max(begin, end - LOOKED_AT) : end]
        for place in reversed(range(len(near))):
            recalled = near[place]
            named = frozenset(days_in(recalled.text))
            if not named or named & days or recalled.kind in _SETTLED or recalled.is_question or not recalled.is_whole:
                continue
            between = (*near[place:], *candidate.told)
            telling = frozenset(stem for one in between for stem, weight in one.stems.items() if weight >= NAMED)
            is_moved = any(moves(one.text) for one in between)
            names = frozenset[str]() if said.refers_back else own
            yield cls(candidate, recalled, telling - named - days, names, is_moved)

    def place_of_old(self, others: Iterable[tuple[frozenset[str], frozenset[str]]]) -> int | None:
        """Return the place of what was settled for the old day among days with the stems beside them; None if it is not
        sure.
        """
        old, new = {*days_in(self.recalled.text)}, {*days_in(self.candidate.told[-1].text)}
        on_old_day: list[int] = []
        for place, (named, stems) in enumerate(others):
            if not named & old or named & new or not self.names <= stems:
                continue
            if stems & self.subjects:
                return place
            on_old_day.append(place)
        return on_old_day[0] if self.is_moved and len(on_old_day) == 1 else None

    def may_move(self, kind: PointKind, by: Sequence[str]) -> bool:
        """Return whether a point may give way: what somebody promised does where they say so themselves or agree."""
        is_promise_of_others = kind is PointKind.ACTION and self.candidate.kind is PointKind.DECISION
        return kind in MOVABLE and not (is_promise_of_others and by and {*by}.isdisjoint(self.candidate.by))

    def leads_to(self, other: PointCandidate) -> bool:
        """Return whether another candidate is but how the new day came up."""
        return self.recalled in other.told and other.kind not in _SETTLED

    def instead_of(self, kind: PointKind) -> PointCandidate:
        """Return the candidate, with what names the old day, that takes the place of a point of the kind."""
        told = self.candidate.told
        if self.recalled not in told and sum(len(one.text) for one in (self.recalled, *told)) <= LONGEST_EXCHANGE:
            told = tuple(sorted((self.recalled, *told), key=lambda one: one.order))
        is_decided = PointKind.DECISION in (kind, self.candidate.kind)
        return replace(self.candidate, told=told, kind=PointKind.DECISION if is_decided else self.candidate.kind)


def with_new_days(
    candidates: Iterable[PointCandidate], statements: Sequence[Statement], known: KnownSubjects
) -> list[PointCandidate]:
    """Return the candidates without what was settled for a day that gives way to another."""
    kept: list[_Kept] = []
    for candidate in candidates:
        moved = (_moved(each, kept, known) for each in Rescheduling.each_of(candidate, statements))
        kept.append(_Kept.of(next((one for one in moved if one is not None), candidate)))
    return [one.candidate for one in kept]


class _Kept(NamedTuple):
    """A candidate with the days and the stems of its text, which are found once."""

    candidate: PointCandidate
    days: frozenset[str]
    stems: frozenset[str]

    @classmethod
    def of(cls, candidate: PointCandidate) -> _Kept:
        return cls(candidate, frozenset(days_in(candidate.text)), frozenset(candidate.stems))


def _moved(moved: Rescheduling, kept: list[_Kept], known: KnownSubjects) -> PointCandidate | None:
    """Return what is on another day, and take what it was before out of the candidates ``kept`` or the ``known``.

    None if neither has it.
    """
    movable = (one for one in reversed(kept) if one.days and moved.may_move(one.candidate.kind, one.candidate.by))
    dated = islice(movable, REMEMBERED)
    earlier = [one for one in dated if one.candidate.order < moved.recalled.order]
    place = moved.place_of_old((one.days, one.stems) for one in earlier)
    if place is not None:
        old = earlier[place].candidate
        kept[:] = [one for one in kept if one.candidate is not old and not moved.leads_to(one.candidate)]
        candidate = moved.instead_of(old.kind)
        return candidate if candidate.replaces is not None else replace(candidate, replaces=old.replaces)
    point = known.first(moved.may_move, moved.place_of_old)
    if point is None:
        return None
    kept[:] = [one for one in kept if not moved.leads_to(one.candidate)]
    return replace(moved.instead_of(point.kind), replaces=point.id)


def _is_fixed(candidate: PointCandidate) -> bool:
    """Return whether the candidate tells what holds from now on, and does not only propose it."""
    if candidate.kind in _SETTLED:
        return True
    said = candidate.told[-1]
    if candidate.kind is not PointKind.CLAIM or said.is_question:
        return False
    return Marker.CONCLUDES in said.markers or is_moved(said.text)


def _leads_on(said: Statement) -> bool:
    """Return whether a sentence goes by what was said before: by a pronoun, or as a conclusion."""
    return said.refers_back or Marker.CONCLUDES in said.markers
