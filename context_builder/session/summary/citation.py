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

    def encode(self) -> bytes:
        return orjson.dumps(self)

    @classmethod
    def decode(cls, encoded: bytes) -> CitedMessage:
        """Return the source that :meth:`encode` wrote."""
        return cls(**CITATION.whole(encoded))


@dataclass(frozen=True, slots=True)
class ExplainedPoint:
    """A point and the messages behind it, in the order it cites them."""

    point: Point
    sources: Sequence[CitedMessage]

    def wire(self) -> dict[str, Any]:
        return {**self.point.wire(), "sources": [asdict(source) for source in self.sources]}


def explain(fields: Mapping[str, bytes]) -> list[ExplainedPoint]:
    """Return the points of the checkpoint whose ``fields`` these are, in chronological order."""
    sources = read_sources(fields)
    written = SUMMARY.whole(fields["summary"])["points"] if "summary" in fields else []
    points = map(Point.from_wire, written)
    return [ExplainedPoint(one, [sources[cited] for cited in one.ids if cited in sources]) for one in points]


def read_sources(fields: Mapping[str, bytes]) -> dict[int, CitedMessage]:
    """Return the cited messages that a checkpoint holds, by id, in the order they were said."""
    found = (CitedMessage.decode(value) for name, value in fields.items() if name.startswith(SOURCE))
    return {source.id: source for source in sorted(found, key=lambda source: source.id)}
