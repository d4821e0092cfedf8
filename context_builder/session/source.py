"""A message that the summary cites, kept after it left the buffer so that each point can be explained."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

import orjson

from context_builder.session.entry import Entry

SOURCE_CHARS: Final = 500
"""Most characters of a cited message that are kept."""

_TIMESTAMP_CHARS: Final = 64
"""Room for every timestamp that a listener writes in earnest."""


@dataclass(frozen=True, slots=True)
class Source:
    """What was said, by whom and when; ``id`` is what a point's ``ids`` refer to.

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
    def of(cls, entry: Entry) -> Source:
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
        """Name of the checkpoint field that holds this source."""
        return f"s:{self.id}"

    def wire(self) -> dict[str, Any]:
        return asdict(self)

    def encode(self) -> bytes:
        return orjson.dumps(self)

    @classmethod
    def decode(cls, encoded: bytes) -> Source:
        """The source that :meth:`encode` wrote."""
        return cls(**orjson.loads(encoded))
