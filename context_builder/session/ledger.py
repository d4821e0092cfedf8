"""The rolling summary as a ledger of points, each citing the messages it came from.

A summary is never summarized again. New points are added in chronological order; only when the
token budget demands it are old ones shortened and then merged, oldest first, and what identifies
things (numbers, names, identifiers) stays verbatim for as long as anything stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from context_builder.analysis.analyst import MAX_CITATIONS, DraftPoint, KnownPoint, PointKind
from context_builder.session.condense import LEVELS, condense, single_line
from context_builder.session.entry import Entry

_T = TypeVar("_T")

_PASSES: Final = ((1, 8), (1, 0), (2, 8))
"""(level, newest points left alone) of each pass that shortens points until they fit, oldest first."""

_LABELS: Final = {
    PointKind.QUESTION: " asks",
    PointKind.DECISION: " (decision)",
    PointKind.ACTION: " (action)",
    PointKind.DISAGREEMENT: " disagrees",
    PointKind.CONSILIENCE: " (assistant)",
    PointKind.CLAIM: "",
}


@dataclass(frozen=True, slots=True)
class Point:
    """One line of the summary.

    ``ids`` are the cited messages' ids in the session, ``messages`` their published numbers, where they
    have one. ``time`` is the first cited message's moment in epoch seconds. ``level`` says how far the text
    has been condensed, 0 being as the analyst wrote it.
    """

    id: int
    text: str
    ids: tuple[int, ...]
    messages: tuple[int, ...]
    speakers: tuple[str, ...]
    kind: PointKind
    time: float
    first_number: int | None = None
    level: int = 0

    def render(self) -> str:
        """The point as a line of ``rolling_summary.text``."""
        return f"{', '.join(self.speakers)}{_LABELS[self.kind]}: {self.text}"

    def wire(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "text": self.text,
            "messages": list(self.messages),
            "ids": list(self.ids),
            "speakers": list(self.speakers),
            "kind": self.kind.value,
            "time": self.time,
            "first_number": self.first_number,
            "level": self.level,
        }

    @classmethod
    def from_wire(cls, fields: Mapping[str, Any]) -> Point:
        return cls(
            id=fields["id"],
            text=fields["text"],
            ids=tuple(fields["ids"]),
            messages=tuple(fields["messages"]),
            speakers=tuple(fields["speakers"]),
            kind=PointKind(fields["kind"]),
            time=fields["time"],
            first_number=fields["first_number"],
            level=fields["level"],
        )


class Ledger:
    """Points in chronological order, within ``budget`` tokens as ``count`` counts them."""

    def __init__(self, budget: int, count: Callable[[str], int]) -> None:
        self._budget = budget
        self._count = count
        self.points: list[Point] = []
        self._next_id = 1

    def restore(self, points: Iterable[Point]) -> None:
        """Take over points that :meth:`Point.wire` wrote."""
        self.points = list(points)
        self._next_id = max((point.id for point in self.points), default=0) + 1

    def render(self) -> str:
        """The text of the rolling summary: one line a point."""
        return "\n".join(point.render() for point in self.points)

    def tail(self, tokens: int) -> list[KnownPoint]:
        """The newest points that fit ``tokens``, oldest first."""
        chosen: list[KnownPoint] = []
        for point in reversed(self.points):
            tokens -= self._count(point.text)
            if tokens < 0:
                break
            chosen.append(KnownPoint(point.id, point.text, point.kind, point.speakers))
        return chosen[::-1]

    def add(self, drafts: Sequence[DraftPoint], entries: Mapping[int, Entry]) -> int:
        """Take in an analyst's points about ``entries`` (by id); how many were accepted.

        A draft that cites none of the entries, or anything besides them, is refused.
        """
        accepted = 0
        for draft in drafts:
            text = single_line(draft.text)
            if not text or not draft.cites or any(cited not in entries for cited in draft.cites):
                continue
            self._insert(self._point(draft, text, entries))
            accepted += 1
        self._fit()
        return accepted

    def _point(self, draft: DraftPoint, text: str, entries: Mapping[int, Entry]) -> Point:
        cited = [entries[cite] for cite in dict.fromkeys(draft.cites)][:MAX_CITATIONS]
        listener_numbers = [e.number for e in cited if e.number is not None and not e.consilience]
        point = Point(
            id=self._next_id,
            text=text,
            ids=tuple(entry.id for entry in cited),
            messages=tuple(entry.number for entry in cited if entry.number is not None),
            speakers=tuple(dict.fromkeys(single_line(entry.speaker) for entry in cited)),
            kind=PointKind.CONSILIENCE if all(entry.consilience for entry in cited) else draft.kind,
            time=min(entry.time for entry in cited),
            first_number=min(listener_numbers, default=None),
        )
        self._next_id += 1
        return self._restating(draft.replaces, point)

    def _restating(self, replaced_id: int | None, point: Point) -> Point:
        """``point`` in place of the one it restates, keeping where that one came from."""
        old = next((known for known in self.points if known.id == replaced_id), None)
        if old is None:
            return point
        self.points.remove(old)
        return _with_sources(point, old, point)

    def _insert(self, point: Point) -> None:
        """Last, unless its messages came late: then before the first point that is later by the contract's
        order, a higher number and a later time."""
        index = next((i for i, other in enumerate(self.points) if _is_later(other, point)), len(self.points))
        self.points.insert(index, point)

    def _fit(self) -> None:
        """Shorten, then merge, then drop the oldest until the text is within the budget."""
        costs = [self._cost(point) for point in self.points]
        excess = sum(costs) - self._budget
        for level, untouched in _PASSES:
            for i in range(max(0, len(self.points) - untouched)):
                if excess <= 0:
                    break
                if self.points[i].level < level:
                    self.points[i] = _condensed(self.points[i], level)
                    saved = costs[i] - self._cost(self.points[i])
                    costs[i] -= saved
                    excess -= saved
        while len(self.points) > 1 and self._count(self.render()) > self._budget:
            self._merge_oldest()
        if self.points and self._count(self.render()) > self._budget:
            self._clip_last()

    def _cost(self, point: Point) -> int:
        return self._count(point.render() + "\n")

    def _merge_oldest(self) -> None:
        """Make one line of the two oldest points, in words that identify things; no longer than the longer one."""
        first, second = self.points[0], self.points[1]
        room = max(self._count(first.text), self._count(second.text))
        words = list(dict.fromkeys([*first.text.split(), *second.text.split()]))
        ranked = condense(" ".join(words), LEVELS).split()
        while len(ranked) > 1 and self._count(" ".join(ranked)) > room:
            ranked.pop(0)
        merged = replace(second, id=first.id, text=" ".join(ranked), kind=PointKind.CLAIM, level=LEVELS)
        self.points[:2] = [_with_sources(merged, first, second)]

    def _clip_last(self) -> None:
        """A single point over the budget keeps the words that fit, after a mark."""
        point = self.points[0]
        words = point.text.split()
        while words and self._count(replace(point, text=" ".join([*words, "…"])).render()) > self._budget:
            del words[len(words) * 3 // 4 :]
        self.points[0] = replace(point, text=" ".join([*words, "…"]), level=LEVELS)


def _condensed(point: Point, level: int) -> Point:
    return replace(point, text=condense(point.text, level), level=level)


def _is_later(other: Point, point: Point) -> bool:
    if other.first_number is None or point.first_number is None:
        return False
    return other.first_number > point.first_number and other.time > point.time


def _with_sources(point: Point, first: Point, second: Point) -> Point:
    """``point`` citing what both came from, the earliest and the latest first to stay."""
    ids = _ends([*first.ids, *second.ids])
    numbers = [n for n in (first.first_number, second.first_number) if n is not None]
    return replace(
        point,
        ids=ids,
        messages=_ends([*first.messages, *second.messages]),
        speakers=_ends([*first.speakers, *second.speakers]),
        time=min(first.time, second.time),
        first_number=min(numbers, default=None),
    )


def _ends(items: list[_T]) -> tuple[_T, ...]:
    unique = list(dict.fromkeys(items))
    if len(unique) <= MAX_CITATIONS:
        return tuple(unique)
    return (*unique[: MAX_CITATIONS // 2], *unique[-(MAX_CITATIONS - MAX_CITATIONS // 2) :])
