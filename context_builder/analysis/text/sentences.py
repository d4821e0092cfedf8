"""Sentences of what was said, each short enough to stand as one line of a summary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from context_builder.analysis.text.disfluency import capitalized, fluent, without_opening

LONGEST: Final = 220
"""Characters of one sentence; a longer one is taken apart at its clauses."""

SHORTEST_CLAUSE: Final = 60
"""Characters that a clause has before a cut; speech without punctuation is not cut to shreds."""

_END: Final = re.compile(r"(?:(?<=[.?!…])|(?<=[.?!…][\"”'’)\]]))\s+|(?<=[。？！])|\n")
_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|prof|vs|fig|eq|e\.g|i\.e|cf|etc|approx|no|vol|al)\.|\b[A-Z]\.)$", re.I
)
_CLAUSE: Final = re.compile(
    r"[,;:–—-]\s+|\s+(?=(?:and|but|so|because|which|then|or|if|when|while|whereas|although|where)\s)", re.IGNORECASE
)


def sentences(text: str) -> Iterator[str]:
    """The sentences of ``text`` in order, without disfluencies, none longer than ``LONGEST``."""
    for sentence in _whole(fluent(text)):
        for piece in _parts(without_opening(sentence.strip())):
            if part := piece.rstrip(" ,;:–—-"):
                yield part


def _whole(text: str) -> Iterator[str]:
    begun = ""
    for piece in _END.split(text):
        begun = f"{begun} {piece}" if begun else piece
        if len(begun) > LONGEST or not _ABBREVIATION.search(begun[-8:]):
            yield begun
            begun = ""
    if begun:
        yield begun


def _parts(sentence: str) -> Iterator[str]:
    while len(sentence) > LONGEST:
        cut = _cut(sentence)
        yield sentence[:cut]
        sentence = capitalized(sentence[cut:].lstrip(" ,;:–—-"))
    yield sentence


def _cut(sentence: str) -> int:
    """Where to part a long sentence: at its last clause within the limit, else between words."""
    clause = 0
    for match in _CLAUSE.finditer(sentence, SHORTEST_CLAUSE, LONGEST):
        clause = match.end()
    if clause:
        return clause
    space = sentence.rfind(" ", SHORTEST_CLAUSE, LONGEST)
    return space if space > 0 else LONGEST
