"""A point is one line of the rolling summary, and knows where it came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from context_builder.analysis.analyst import MAX_CITATIONS, PointKind

_T = TypeVar("_T")

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
    """Holds one line of the summary.

    ``ids`` are the cited messages' ids in the session, ``messages`` their published numbers, where they
    have one. ``time`` is the first cited message's moment in epoch seconds. ``level`` says how far the text
    has been condensed: 0 as the analyst wrote it, 1 and 2 shortened, above that merged with its neighbours.
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
        """Return the point as a line of ``rolling_summary.text``."""
        return f"{', '.join(self.speakers)}{_LABELS[self.kind]}: {self.text}"

    def citing(self, first: Point, second: Point) -> Point:
        """Return this point with the sources of two others, of which the earliest and the latest stay first."""
        numbers = [n for n in (first.first_number, second.first_number) if n is not None]
        return replace(
            self,
            ids=_ends([*first.ids, *second.ids]),
            messages=_ends([*first.messages, *second.messages]),
            speakers=_ends([*first.speakers, *second.speakers]),
            time=min(first.time, second.time),
            first_number=min(numbers, default=None),
        )

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


def rendered(points: Sequence[Point]) -> str:
    """Return the text of the rolling summary: one line a point."""
    return "\n".join(point.render() for point in points)


def _ends(items: list[_T]) -> tuple[_T, ...]:
    unique = list(dict.fromkeys(items))
    if len(unique) <= MAX_CITATIONS:
        return tuple(unique)
    return (*unique[: MAX_CITATIONS // 2], *unique[-(MAX_CITATIONS - MAX_CITATIONS // 2) :])
