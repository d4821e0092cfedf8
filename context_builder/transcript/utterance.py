"""An utterance is one thing somebody said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

UNKNOWN_SPEAKER: Final = "Unknown"
"""Who spoke when the recording does not say."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """Tells what was said, by whom, and when.

    ``at`` is in seconds from the start of the recording, ``None`` when the recording does not
    say. ``contribution`` holds the metadata of an assistant's contribution and is ``None`` for
    what people said.
    """

    speaker: str
    text: str
    at: float | None = None
    contribution: Mapping[str, object] | None = None
