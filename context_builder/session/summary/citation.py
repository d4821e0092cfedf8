"""A cited message is kept after it left the buffer, so that each point of the summary can be explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import orjson

from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.stored import CITATION, SUMMARY
from context_builder.session.summary.point import Point

SOURCE: Final = "s:"
"""Begins the checkpoint's fields of cited messages, before the id."""

SOURCE_CHARS: Final = 500
"""Most characters of a cited message that are kept."""

_TIMESTAMP_CHARS: Final = 64
"""Room for every timestamp that a listener writes in earnest."""


@dataclass(frozen=True, slots=True)
class CitedMessage:
    """What was said, by whom and when; a point's ``ids`` refer to its ``id``.

    ``clipped`` says that ``text`` is only the beginning.
    """

    id: int
    number: int | None
    speaker: str
    timestamp: str
    text: str
    consilience: bool
    clipped: bool

    @classmethod
    def of(cls, entry: BufferedMessage) -> CitedMessage:
        return cls(
            id=entry.id,
            number=entry.number,
            speaker=entry.speaker[:SOURCE_CHARS],
            timestamp=entry.timestamp[:_TIMESTAMP_CHARS],
            text=entry.text[:SOURCE_CHARS],
            consilience=entry.consilience,
            clipped=len(entry.text) > SOURCE_CHARS,
        )

    @property
    def field(self) -> str:
        """Return the name of the checkpoint field that holds this source."""
        return f"{SOURCE}{self.id}"

    def wire(self) -> dict[str, Any]:
        return asdict(self)

    def encode(self) -> bytes:
        return orjson.dumps(self)

    @classmethod
    def decode(cls, encoded: bytes) -> CitedMessage:
        """Return the source that :meth:`encode` wrote."""
        return cls(**CITATION.whole(encoded))


@dataclass(frozen=True, slots=True)
class ExplainedPoint:
    """A point and the messages behind it, in the order it cites them.

    ``missing`` are ids of cited messages whose words were not kept: they were summarized by an earlier version.
    """

    point: Point
    sources: Sequence[CitedMessage]
    missing: Sequence[int]

    def wire(self) -> dict[str, Any]:
        cited = [source.wire() for source in self.sources]
        return {**self.point.wire(), "sources": cited, "missing": list(self.missing)}


def explain(fields: Mapping[str, bytes]) -> list[ExplainedPoint]:
    """Return the points of the checkpoint whose ``fields`` these are, in chronological order."""
    points = SUMMARY.whole(fields["summary"])["points"] if "summary" in fields else []
    sources = read_sources(fields)
    return [_explained(Point.from_wire(point), sources) for point in points]


def read_sources(fields: Mapping[str, bytes]) -> dict[int, CitedMessage]:
    """Return the cited messages that a checkpoint holds, by id, in the order they were said."""
    found = (CitedMessage.decode(value) for name, value in fields.items() if name.startswith(SOURCE))
    return {source.id: source for source in sorted(found, key=lambda source: source.id)}


def _explained(point: Point, sources: Mapping[int, CitedMessage]) -> ExplainedPoint:
    return ExplainedPoint(
        point,
        [sources[cited] for cited in point.ids if cited in sources],
        [cited for cited in point.ids if cited not in sources],
    )
