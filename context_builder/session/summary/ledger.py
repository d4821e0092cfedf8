"""The ledger holds the rolling summary as points, whole sentences that rest on quotes of messages.

New points are added in chronological order. A point that answers, settles or corrects a known one takes its place.
Over the token budget whole points are hidden, and leave once there are too many; a model rewrites old ones as fewer
sentences, so that they are shown again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from context_builder.analysis.analyst import (
    CompactedPoint,
    CompactionRequest,
    CompactionResult,
    DraftPoint,
    KnownPoint,
    PointKind,
    Quote,
)
from context_builder.clock import day_of
from context_builder.quoting import quoted_line, quoted_name
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.summary.point import Point, PointQuote, rendered
from context_builder.session.summary.token_budget import cost_of, fit, is_binding, with_dates_that_fit

RESERVE: Final = 1.5
"""Budgets that the points may have at most, those that are hidden among them, until a model rewrites them."""

COMPACT_FROM: Final = 0.95
"""Part of the budget from which on a model rewrites points: soon after what it saves, a summary adds a tenth again."""

COMPACT_TO: Final = 0.88
"""Part of the budget that the points are to take once they were rewritten: room that stays empty is lost to readers."""

MOST_SAVED: Final = 0.2
"""Part of the budget that one rewriting is to save at most: asked for more, a model cuts causes and reasons, too."""

SHORTER: Final = 4
"""Times as many tokens are up for rewriting as are to be saved: most stay as they are, and the least may leave."""

SHARES: Final[Mapping[PointKind, float]] = {
    PointKind.DECISION: 0.3,
    PointKind.ACTION: 0.2,
    PointKind.QUESTION: 0.1,
    PointKind.DISAGREEMENT: 0.1,
    PointKind.PROPOSAL: 0.05,
    PointKind.CLAIM: 0.25,
    PointKind.CONSILIENCE: 0.0,
}
"""Parts of the budget. Kinds that take more are rewritten first, so that causes and rules stay beside decisions."""

LEFT_ALONE: Final = 6
"""Newest points that are never rewritten: what follows may still answer, settle or correct them."""

MOST_EVIDENCE: Final = 20
"""Most quotes of one point. A point that was rewritten many times keeps those that are most like its sentence."""

MOST_HOLDERS: Final = 8
"""Most speakers whose point one is."""

MOST_MERGED: Final = 50
"""Newest points of its kind that a rewritten point knows; what replaces it replaces these in the memory, too."""

REMEMBERED_REPLACEMENTS: Final = 1_000
"""Newest replaced points that are kept, so that a late delivery does not bring them back to the memory."""

_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class LedgerUpdate:
    """The points that were ``written``, and those that they ``replaced``, or that were retracted.

    Those of the written whose ids are ``renamed`` were known before, and are the same ones with other names.
    """

    written: Sequence[Point] = ()
    replaced: Sequence[Point] = ()
    renamed: Set[int] = frozenset()

    @property
    def changes_anything(self) -> bool:
        return bool(self.written or self.replaced)

    def followed_by(self, later: LedgerUpdate) -> LedgerUpdate:
        """Return this and what came after it as one; what came and went in between is none of it."""
        gone = {point.id for point in later.replaced}
        now = {point.id for point in later.written}
        written = [point for point in self.written if point.id not in gone | now]
        new = {point.id for point in self.written} - self.renamed
        replaced = [point for point in later.replaced if point.id not in new]
        return LedgerUpdate(
            [*written, *later.written], [*self.replaced, *replaced], (self.renamed | (later.renamed - new)) - gone
        )


class Ledger:
    """Points in chronological order, of which as many are shown as fit ``budget`` tokens by ``count``.

    ``points`` are all, ``shown`` those that are published. ``replaced`` are the ids and times of points whose place
    others took, the newest last.
    """

    def __init__(self, budget: int, count: Callable[[str], int]) -> None:
        self._budget = budget
        self._count = count
        self.points: list[Point] = []
        self.shown: list[Point] = []
        self.replaced: list[tuple[int, float]] = []
        self._next_id = 1

    def restore(self, points: Iterable[Point], replaced: Iterable[tuple[int, float]], next_id: int) -> None:
        """Restore points that :meth:`Point.wire` wrote, and what else a checkpoint keeps."""
        self.points = list(points)
        self.replaced = list(replaced)
        self._next_id = next_id
        self._fit()

    @property
    def next_id(self) -> int:
        """Return the id of the next point; no id is given twice, whatever left the ledger."""
        return self._next_id

    def grow(self, budget: int) -> None:
        """Let the summary have ``budget`` tokens from now on, if that is more than it had."""
        if budget > self._budget:
            self._budget = budget
            self._fit()

    def render(self) -> str:
        """Return the text of the rolling summary, with dates beside the words that mean them, as far as these fit."""
        return with_dates_that_fit(self.shown, self._budget, self._count)

    def known(self, tokens: int) -> list[KnownPoint]:
        """Return the points that an analyst is shown, oldest first: all if they have at most so many ``tokens``.

        Otherwise decisions, actions and open questions come first, and of each the newest.
        """
        chosen: set[int] = set()
        newest_first = self.points[::-1]
        for point in sorted(newest_first, key=lambda one: not is_binding(one.kind)):
            tokens -= cost_of(point, self._count)
            if tokens < 0:
                break
            chosen.add(point.id)
        return [point.known() for point in self.points if point.id in chosen]

    def add(
        self,
        drafts: Sequence[DraftPoint],
        entries: Mapping[int, BufferedMessage],
        *,
        instead: bool = False,
        over: Set[int] = frozenset(),
    ) -> LedgerUpdate:
        """Add an analyst's points about ``entries`` (by id); return those that were accepted, as they were written.

        A draft that quotes none of the entries, or anything besides them, is refused. With ``instead``, they take the
        place of the points that quote nothing but these entries. Points whose ids are ``over`` leave, unless a
        compaction brought them together with others meanwhile.
        """
        written: list[Point] = []
        place, replaced = self._without(entries.keys()) if instead else (None, [])
        gone: list[Point] = []
        for draft in drafts:
            text = quoted_line(draft.text)
            if not text or not draft.evidence or any(cited not in entries for cited in draft.cites):
                continue
            # A decision on a dispute may become two points, of which both name the dispute: it is still there for the
            # second one, and leaves once.
            there = [*self.points, *gone]
            old = [point for point in there if point.id in draft.replaces or point.was(draft.replaces)]
            self.points = [point for point in self.points if point not in old]
            gone += [point for point in old if point not in gone]
            point = self._point(draft, text, entries, old, there)
            if place is None:
                self._insert(point)
            else:
                self.points.insert(place + len(written), point)
            written.append(point)
        replaced += [*gone, *(point for point in self.points if point.id in over)]
        self.points = [point for point in self.points if point.id not in over]
        self._replace(replaced)
        self._fit()
        return LedgerUpdate(written, replaced)

    def revise(self, revise: Callable[[Point], Point | None]) -> LedgerUpdate:
        """Check each point against what was corrected, and return what changed.

        A point whose words are others is another point, in its place; where only names are, it stays the same one.
        """
        points: list[Point] = []
        written: list[Point] = []
        replaced: list[Point] = []
        renamed: set[int] = set()
        for point in self.points:
            after = revise(point)
            if after is None:
                replaced.append(point)
            elif after == point:
                points.append(point)
            else:
                if _words(after) != _words(point):
                    replaced.append(point)
                    after = replace(after, id=self._next_id, merges=point.known_as[-MOST_MERGED:])
                    self._next_id += 1
                else:
                    renamed.add(after.id)
                points.append(after)
                written.append(after)
        self.points = points
        self._replace(replaced)
        self._fit()
        return LedgerUpdate(written, replaced, renamed)

    def _fit(self) -> None:
        self.points = fit(self.points, int(RESERVE * self._budget), self._count)
        self.shown = fit(self.points, self._budget, self._count)

    def compaction(self, apart: Set[int] = frozenset()) -> CompactionRequest | None:
        """Return points to be rewritten as fewer sentences; None while there is room.

        Those ``apart`` were asked about already: others are asked about only where something is hidden all the same.
        No more is to be saved at once than :data:`MOST_SAVED`. Of the old points those come first whose kind takes
        more than its share of the budget, then those that were rewritten least often, so that no words are written
        anew again and again; of these the oldest. The rest are shown beside them, since they may tell what no longer
        holds.
        """
        costs = {point.id: cost_of(point, self._count) for point in self.points}
        whole = sum(costs.values())
        if whole <= COMPACT_FROM * self._budget or (apart and len(self.shown) == len(self.points)):
            return None
        excess = min(whole - int(COMPACT_TO * self._budget), int(MOST_SAVED * self._budget))
        taken = Counter[PointKind]()
        for point in self.points:
            taken[point.kind] += costs[point.id]
        old = sorted(
            self.points[: max(0, len(self.points) - LEFT_ALONE)],
            key=lambda point: (taken[point.kind] <= SHARES[point.kind] * self._budget, point.rewrites),
        )
        chosen: dict[int, int] = {}
        for point in old:
            if sum(chosen.values()) < SHORTER * excess and point.id not in apart:
                chosen[point.id] = costs[point.id]
        if len(chosen) < 2:
            return None
        asked = [point.known() for point in self.points if point.id in chosen]
        beside = [point.known() for point in self.points if point.id not in chosen]
        tokens = sum(chosen.values())
        return CompactionRequest(asked, max(tokens - excess, tokens // 2), beside)

    def compact(self, asked: Sequence[KnownPoint], result: CompactionResult) -> bool:
        """Put the sentences of ``result`` in the place of the points that they merge; return whether that was done.

        Of the points that were ``asked`` about, those leave as well that ``result`` drops, decisions, actions and open
        questions only where it has them as settled; all others stay as they are. Nothing is done where the text would
        not get shorter, or a point was replaced meanwhile: a sentence may say what no longer holds.
        """
        place = {point.id: index for index, point in enumerate(self.points)}
        said = {merged for one in result.points for merged in one.merges}
        if not {point.id for point in asked} <= place.keys() or not said <= {point.id for point in asked}:
            return False
        dropped = {point.id for point in asked if point.id in result.dropped and not is_binding(point.kind)}
        gone = said | dropped | (result.settled & {point.id for point in asked})
        placed = [(index, point) for index, point in enumerate(self.points) if point.id not in gone]
        # A merged point stands where the newest of its points stood: what it says last holds since then.
        for next_id, one in enumerate(result.points, start=self._next_id):
            old = [self.points[place[merged]] for merged in one.merges]
            placed.append((place[old[-1].id], _merged(next_id, one, old)))
        points = [point for _, point in sorted(placed, key=lambda each: each[0])]
        if self._count(rendered(points)) >= self._count(rendered(self.points)):
            return False
        self.points = points
        self._next_id += len(result.points)
        self._fit()
        return True

    def _point(
        self,
        draft: DraftPoint,
        text: str,
        entries: Mapping[int, BufferedMessage],
        old: Sequence[Point],
        there: Sequence[Point],
    ) -> Point:
        cited = [entries[cite] for cite in draft.cites]
        numbers = [entry.number for entry in cited if entry.number is not None and not entry.consilience]
        speakers = dict.fromkeys(quoted_name(entry.speaker) for entry in cited)
        new = [_quoted(quote, entries[quote.message]) for quote in draft.evidence]
        leaned_on = [one for one in there if one.id in draft.rests_on or one.was(draft.rests_on)]
        kind = PointKind.CONSILIENCE if all(entry.consilience for entry in cited) else draft.kind
        by = tuple(dict.fromkeys(quoted_name(name) for name in draft.by)) or tuple(speakers)
        point = Point(
            id=self._next_id,
            text=text,
            kind=kind,
            by=by[:MOST_HOLDERS],
            evidence=_bounded(text, [quote for point in (*old, *leaned_on) for quote in point.evidence], new),
            time=min(entry.time for entry in cited),
            first_number=min(numbers, default=None),
            spoken=_is_spoken(draft, text, [*speakers, *by, *(name for each in old for name in each.by)]),
            unconfirmed=draft.unconfirmed,
            said_on=_said_on(cited),
        )
        self._next_id += 1
        return point

    def _without(self, ids: Set[int]) -> tuple[int, list[Point]]:
        """Take out the points that quote nothing besides ``ids``; return where the first of them was, and them."""
        gone = [point for point in self.points if ids >= set(point.ids)]
        place = self.points.index(gone[0]) if gone else len(self.points)
        self.points = [point for point in self.points if point not in gone]
        return place, gone

    def _replace(self, replaced: Sequence[Point]) -> None:
        gone = [known for point in replaced for known in point.known_as]
        self.replaced = [*self.replaced, *gone][-REMEMBERED_REPLACEMENTS:]

    def _insert(self, point: Point) -> None:
        """Insert the point last, unless its messages came late: then before the first point that is later by the
        contract's order, a higher number and a later time.
        """
        index = next((i for i, other in enumerate(self.points) if _is_later(other, point)), len(self.points))
        self.points.insert(index, point)


def _said_on(cited: Sequence[BufferedMessage]) -> str | None:
    """Return the day on which messages were said, by their own clocks; None of several days."""
    days = {day_of(entry.timestamp) for entry in cited}
    said_on = days.pop() if len(days) == 1 else None
    return None if said_on is None else said_on.isoformat()


def _merged(point_id: int, compacted: CompactedPoint, old: Sequence[Point]) -> Point:
    numbers = [point.first_number for point in old if point.first_number is not None]
    return Point(
        id=point_id,
        text=quoted_line(compacted.text),
        kind=compacted.kind,
        by=tuple(dict.fromkeys(name for point in old for name in point.by))[:MOST_HOLDERS],
        evidence=_bounded(compacted.text, [quote for point in old for quote in point.evidence]),
        time=min(point.time for point in old),
        first_number=min(numbers, default=None),
        spoken=len(old) == 1 and old[0].spoken and old[0].text == compacted.text,
        unconfirmed=any(point.unconfirmed for point in old),
        rewrites=1 + max(point.rewrites for point in old),
        said_on=old[0].said_on if len({point.said_on for point in old}) == 1 else None,
        merges=tuple(known for point in old if point.kind is compacted.kind for known in point.known_as)[-MOST_MERGED:],
    )


def _words(point: Point) -> list[str]:
    return [point.text, *(quote.text for quote in point.evidence)]


def _is_later(other: Point, point: Point) -> bool:
    if other.first_number is None or point.first_number is None:
        return False
    return other.first_number > point.first_number and other.time > point.time


def _quoted(quote: Quote, entry: BufferedMessage) -> PointQuote:
    return PointQuote(entry.id, entry.number, quoted_line(quote.text), quoted_name(entry.speaker))


def _bounded(text: str, old: Iterable[PointQuote], new: Iterable[PointQuote] = ()) -> tuple[PointQuote, ...]:
    """Return the quotes, each once; where they are too many, those of ``old`` that share fewest words with ``text`` go.

    A figure or a name that the sentence tells is then still quoted.
    """
    unique = [*dict.fromkeys([*old, *new])]
    kept = {*new}
    told = {*_WORD.findall(text.casefold())}
    by_likeness = sorted(unique, key=lambda one: -len(told.intersection(_WORD.findall(one.text.casefold()))))
    for quote in by_likeness:
        if len(kept) < MOST_EVIDENCE:
            kept.add(quote)
    return tuple(quote for quote in unique if quote in kept)[-MOST_EVIDENCE:]


def _is_spoken(draft: DraftPoint, text: str, speakers: Iterable[str]) -> bool:
    """Return whether the sentence stands as it was said, and does not begin with who said it."""
    bare = _bare(text)
    if any(re.match(rf"{re.escape(_bare(name))}\b", bare) for name in speakers):
        return False
    return draft.spoken or any(bare in _bare(quote.text) for quote in draft.evidence) or _names_a_speaker(text)


def _names_a_speaker(text: str) -> bool:
    """Return whether a sentence begins as a line does that somebody said: it might forge one."""
    return re.match(r"\S{1,60}: ", text) is not None


def _bare(text: str) -> str:
    return " ".join(text.casefold().split()).strip(".!?… ")
