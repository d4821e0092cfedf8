"""A projection is a shorter text that stands for a source, in its own words: what its paragraphs begin with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

SHARES: Final = (0.5, 0.25, 0.1)
"""Of the words of a text, its projections have so much."""

SHORTEST: Final = 12
"""Words of a projection, at least."""

_PARAGRAPH: Final = re.compile(r"\n\s*\n")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…。！？])\s+|\n+")
_GAP: Final = " […] "


def projections(text: str) -> tuple[str, ...]:
    """Return shorter texts that may stand for ``text``, the longest first; none where it is short already.

    They are made of its sentences in their order, first of those that begin paragraphs; a mark tells what is left out.
    """
    words = len(text.split())
    made: list[str] = []
    for share in SHARES:
        room = int(words * share)
        if room < SHORTEST:
            break
        made.append(_extract(text, room))
    return tuple(dict.fromkeys(made))


def _extract(text: str, room: int) -> str:
    """Return sentences of ``text`` with at most ``room`` words; the beginning of the first, where that has more."""
    paragraphs = [_sentences(paragraph) for paragraph in _PARAGRAPH.split(text) if paragraph.strip()]
    places = sorted((place, number) for number, sentences in enumerate(paragraphs) for place in range(len(sentences)))
    chosen: set[tuple[int, int]] = set()
    for place, number in places:
        words = len(paragraphs[number][place].split())
        if words <= room:
            room -= words
            chosen.add((number, place))
    if not chosen:
        return " ".join(paragraphs[0][0].split()[:room]) + _GAP.rstrip()
    return _joined(paragraphs, chosen)


def _sentences(paragraph: str) -> list[str]:
    return [sentence for sentence in _SENTENCE_END.split(paragraph.strip()) if sentence]


def _joined(paragraphs: Sequence[Sequence[str]], chosen: set[tuple[int, int]]) -> str:
    lines: list[str] = []
    for number, sentences in enumerate(paragraphs):
        kept = [sentence for place, sentence in enumerate(sentences) if (number, place) in chosen]
        if kept:
            lines.append(" ".join(kept) + (_GAP.rstrip() if len(kept) < len(sentences) else ""))
        elif lines and not lines[-1].endswith(_GAP.strip()):
            lines.append(_GAP.strip())
    return "\n".join(lines)
