"""A projection is a shorter text that stands for a source: the beginnings of its paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
    sizes = [size for size in SIZES if size <= words * LARGEST_SHARE]
    if not sizes:
        return {}
    paragraphs = list(filter(None, map(_sentences, _PARAGRAPH.split(text))))
    lengths = [[len(sentence.split()) for sentence in sentences] for sentences in paragraphs]
    made: dict[int, str] = {}
    for size in sizes:
        shorter = _extract(paragraphs, lengths, size)
        if shorter and shorter not in made.values():
            made[size] = shorter
    return made


def _extract(paragraphs: Sequence[Sequence[str]], lengths: Sequence[Sequence[int]], room: int) -> str:
    """Return sentences with at most ``room`` words; the beginning of the first, where that has more."""
    if not paragraphs:
        return ""
    chosen: set[tuple[int, int]] = set()
    for number, place in _by_place(lengths):
        if not room:
            break
        if (words := lengths[number][place]) <= room:
            room -= words
            chosen.add((number, place))
    if not chosen:
        return " ".join(paragraphs[0][0].split()[:room]) + _GAP.rstrip()
    return _joined(paragraphs, chosen)


def _by_place(lengths: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    """Yield paragraph and place of the first sentences of all paragraphs, then of the second ones, and so on."""
    rest: Sequence[int] = range(len(lengths))
    place = 0
    while rest:
        yield from ((number, place) for number in rest)
        place += 1
        rest = [number for number in rest if len(lengths[number]) > place]


def _sentences(paragraph: str) -> list[str]:
    """Return the sentences that say anything: lines of signs alone, such as a fence of code, do not."""
    return [sentence for sentence in _SENTENCE_END.split(paragraph.strip()) if any(map(str.isalnum, sentence))]


def _joined(paragraphs: Sequence[Sequence[str]], chosen: set[tuple[int, int]]) -> str:
    places: dict[int, list[int]] = {}
    for number, place in sorted(chosen):
        places.setdefault(number, []).append(place)
    lines: list[str] = []
    before = next(iter(places)) - 1
    for number, kept in places.items():
        if number > before + 1:
            _mark(lines)
        gap = _GAP.rstrip() if len(kept) < len(paragraphs[number]) else ""
        lines.append(" ".join(paragraphs[number][place] for place in kept) + gap)
        before = number
    if before + 1 < len(paragraphs):
        _mark(lines)
    return "\n".join(lines)


def _mark(lines: list[str]) -> None:
    if not lines[-1].endswith(_GAP.strip()):
        lines.append(_GAP.strip())
