"""A projection is a shorter text that stands for a source: the beginnings of its paragraphs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

SIZES: Final = (1_600, 640, 256, 100, 40, 16)
"""Most words of the projections of a text."""

LARGEST_SHARE: Final = 0.8
"""A projection has at most so much of the words of its text; a longer one would save too little."""

_PARAGRAPH: Final = re.compile(r"\n\s*\n")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…。！？])\s+|\n+")
_GAP: Final = " […] "


def projections(text: str) -> dict[int, str]:
    """Return shorter texts that may stand for ``text``, by their most words, the longest first; none for a short one.

    They are made of its sentences in their order, first of those that begin paragraphs; a mark tells what is left out.
    """
    words = len(text.split())
    made: dict[int, str] = {}
    for size in SIZES:
        shorter = _extract(text, size) if size <= words * LARGEST_SHARE else ""
        if shorter and shorter not in made.values():
            made[size] = shorter
    return made


def _extract(text: str, room: int) -> str:
    """Return sentences of ``text`` with at most ``room`` words; the beginning of the first, where that has more."""
    paragraphs = list(filter(None, map(_sentences, _PARAGRAPH.split(text))))
    places = sorted((place, number) for number, sentences in enumerate(paragraphs) for place in range(len(sentences)))
    chosen: set[tuple[int, int]] = set()
    for place, number in places:
        words = len(paragraphs[number][place].split())
        if words <= room:
            room -= words
            chosen.add((number, place))
    if not paragraphs:
        return ""
    if not chosen:
        return " ".join(paragraphs[0][0].split()[:room]) + _GAP.rstrip()
    return _joined(paragraphs, chosen)


def _sentences(paragraph: str) -> list[str]:
    """Return the sentences that say anything: lines of signs alone, such as a fence of code, do not."""
    return [sentence for sentence in _SENTENCE_END.split(paragraph.strip()) if any(map(str.isalnum, sentence))]


def _joined(paragraphs: Sequence[Sequence[str]], chosen: set[tuple[int, int]]) -> str:
    lines: list[str] = []
    for number, sentences in enumerate(paragraphs):
        kept = [sentence for place, sentence in enumerate(sentences) if (number, place) in chosen]
        if kept:
            lines.append(" ".join(kept) + (_GAP.rstrip() if len(kept) < len(sentences) else ""))
        elif lines and not lines[-1].endswith(_GAP.strip()):
            lines.append(_GAP.strip())
    return "\n".join(lines)
