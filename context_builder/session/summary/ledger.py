"""The ledger holds the rolling summary as points, each citing the messages it came from.

A summary is never summarized again. New points are added in chronological order; only when the
token budget demands it are old ones shortened and then merged, oldest first, and what identifies
things (numbers, names, identifiers) stays verbatim for as long as anything stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from context_builder.analysis.analyst import MAX_CITATIONS, DraftPoint, KnownPoint, PointKind
from context_builder.quoting import quoted_line, quoted_name
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.summary.point import Point, rendered
from context_builder.session.summary.token_budget import fit


class Ledger:
    """Holds points in chronological order, within ``budget`` tokens as ``count`` counts them."""

    def __init__(self, budget: int, count: Callable[[str], int]) -> None:
        self._budget = budget
        self._count = count
        self.points: list[Point] = []
        self._next_id = 1

    def restore(self, points: Iterable[Point]) -> None:
        """Restore points that :meth:`Point.wire` wrote."""
        self.points = list(points)
        self._next_id = max((point.id for point in self.points), default=0) + 1

    def render(self) -> str:
        """Return the text of the rolling summary: one line a point."""
        return rendered(self.points)

    def tail(self, tokens: int) -> list[KnownPoint]:
        """Return the newest points that fit ``tokens``, oldest first."""
        chosen: list[KnownPoint] = []
        for point in reversed(self.points):
            tokens -= self._count(point.text)
            if tokens < 0:
                break
            chosen.append(KnownPoint(point.id, point.text, point.kind, point.speakers))
        return chosen[::-1]

    def add(
        self, drafts: Sequence[DraftPoint], entries: Mapping[int, BufferedMessage], *, instead: bool = False
    ) -> list[Point]:
        """Add an analyst's points about ``entries`` (by id); return those that were accepted, as they were written.

        A draft that cites none of the entries, or anything besides them, is refused. With ``instead``, they take the
        place of the points that cite nothing but these entries.
        """
        accepted: list[Point] = []
        place = self._forget(entries.keys()) if instead else None
        for draft in drafts:
            text = quoted_line(draft.text)
            if not text or not draft.cites or any(cited not in entries for cited in draft.cites):
                continue
            point = self._point(draft, text, entries)
            if place is None:
                self._insert(point)
            else:
                self.points.insert(place + len(accepted), point)
            accepted.append(point)
        self.points = fit(self.points, self._budget, self._count)
        return accepted

    def _point(self, draft: DraftPoint, text: str, entries: Mapping[int, BufferedMessage]) -> Point:
        cited = [entries[cite] for cite in dict.fromkeys(draft.cites)][:MAX_CITATIONS]
        listener_numbers = [e.number for e in cited if e.number is not None and not e.consilience]
        point = Point(
            id=self._next_id,
            text=text,
            ids=tuple(entry.id for entry in cited),
            messages=tuple(entry.number for entry in cited if entry.number is not None),
            speakers=tuple(dict.fromkeys(quoted_name(entry.speaker) for entry in cited)),
            kind=PointKind.CONSILIENCE if all(entry.consilience for entry in cited) else draft.kind,
            time=min(entry.time for entry in cited),
            first_number=min(listener_numbers, default=None),
        )
        self._next_id += 1
        return self._restating(draft.replaces, point)

    def _restating(self, replaced_id: int | None, point: Point) -> Point:
        """Return ``point`` in place of the one it restates, keeping where that one came from."""
        old = next((known for known in self.points if known.id == replaced_id), None)
        if old is None:
            return point
        self.points.remove(old)
        return point.citing(old, point)

    def _forget(self, ids: Set[int]) -> int:
        """Take out the points that cite nothing besides ``ids``; where the first of them was."""
        of_them = [ids >= set(point.ids) for point in self.points]
        self.points = [point for point, gone in zip(self.points, of_them, strict=True) if not gone]
        return of_them.index(True) if True in of_them else len(self.points)

    def _insert(self, point: Point) -> None:
        """Insert the point last, unless its messages came late: then before the first point that is later by the
        contract's order, a higher number and a later time.
        """
        index = next((i for i, other in enumerate(self.points) if _is_later(other, point)), len(self.points))
        self.points.insert(index, point)


def _is_later(other: Point, point: Point) -> bool:
    if other.first_number is None or point.first_number is None:
        return False
    return other.first_number > point.first_number and other.time > point.time
