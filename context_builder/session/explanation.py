"""Where each point of a summary comes from, read from a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from context_builder.session.point import Point
from context_builder.session.source import Source


@dataclass(frozen=True, slots=True)
class Explained:
    """A point and the messages behind it, in the order it cites them.

    ``missing`` are ids of cited messages whose words were not kept: they were summarized by an earlier version.
    """

    point: Point
    sources: Sequence[Source]
    missing: Sequence[int]

    def wire(self) -> dict[str, Any]:
        cited = [source.wire() for source in self.sources]
        return {**self.point.wire(), "sources": cited, "missing": list(self.missing)}


def explain(fields: Mapping[str, bytes]) -> list[Explained]:
    """The points of the checkpoint whose ``fields`` these are, in chronological order."""
    points = orjson.loads(fields["summary"])["points"] if "summary" in fields else []
    sources = read_sources(fields)
    return [_explained(Point.from_wire(point), sources) for point in points]


def read_sources(fields: Mapping[str, bytes]) -> dict[int, Source]:
    """The cited messages that a checkpoint holds, by id, in the order they were said."""
    found = (Source.decode(value) for name, value in fields.items() if name.startswith("s:"))
    return {source.id: source for source in sorted(found, key=lambda source: source.id)}


def _explained(point: Point, sources: Mapping[int, Source]) -> Explained:
    return Explained(
        point,
        [sources[cited] for cited in point.ids if cited in sources],
        [cited for cited in point.ids if cited not in sources],
    )
