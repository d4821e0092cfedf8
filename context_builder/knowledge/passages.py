"""An artifact's content is split into passages short enough to be embedded and to be read alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

LONGEST: Final = 80
"""Words of a passage. An embedding of more takes longer than a second and blurs what is in it."""

_PARAGRAPH: Final = re.compile(r"\n\s*\n")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…。！？])\s+|\n+")
_HEADING: Final = re.compile(r"#{1,6}\s")


def passages(content: str, longest: int = LONGEST) -> list[str]:
    """Return the content's passages in order, whose words together are all of it, each at most ``longest`` words.

    A paragraph stays whole where it fits, with the short ones after it; a heading begins a new one. A longer paragraph
    is parted between sentences, a longer sentence between words.
    """
    made: list[str] = []
    gathered: list[str] = []
    room = longest
    for paragraph in _PARAGRAPH.split(content):
        for piece in _pieces(paragraph.strip(), longest):
            words = len(piece.split())
            if gathered and (words > room or _HEADING.match(piece)):
                made.append("\n".join(gathered))
                gathered, room = [], longest
            gathered.append(piece)
            room -= words
    if gathered:
        made.append("\n".join(gathered))
    return made


def _pieces(paragraph: str, longest: int) -> Iterator[str]:
    """Yield the paragraph, or its sentences as many at a time as fit."""
    if not paragraph:
        return
    if len(paragraph.split()) <= longest:
        yield paragraph
        return
    gathered: list[str] = []
    for sentence in _SENTENCE_END.split(paragraph):
        words = sentence.split()
        if gathered and len(gathered) + len(words) > longest:
            yield " ".join(gathered)
            gathered = []
        whole = len(words) // longest * longest if len(words) > longest else 0
        if whole and whole == len(words):
            whole -= longest
        for begin in range(0, whole, longest):
            yield " ".join(words[begin : begin + longest])
        gathered += words[whole:]
    if gathered:
        yield " ".join(gathered)
