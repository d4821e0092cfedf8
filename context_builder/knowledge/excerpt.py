"""An excerpt shows a source by those of its passages that fit an intent, in their order, and marks what is left out.

Passages that a search found have its score. Others, as those of a text that had to be redacted, are compared with the
intent by their words.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from context_builder.assembly.budget import MARK
from context_builder.knowledge.passages import Passage, passages_of

GAP: Final = "[…]"

SIZES: Final = (1_600, 640, 256, 100)
"""Most words of the excerpts that may stand for a pinned source."""

_STEM: Final = 5
"""First letters by which words are taken for the same: a rough stemmer of most languages."""

_BLANKLESS: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN: Final = re.compile(rf"[{_BLANKLESS}]+|[^\W_{_BLANKLESS}]{{3,}}")


class Part(NamedTuple):
    """A passage, its ``place`` among those of its source, and how much it is like the intent (0..1)."""

    place: int
    passage: Passage
    likeness: float


def found_parts(found: Sequence[Part], text: str | None) -> list[Part]:
    """Return those of the found passages that the text has, which may have changed since it was split; all of them
    where the text is not known."""
    return [one for one in found if text is None or one.passage.text in text]


def parts_of(
    text: str, kind: str, name: str, intent: str, found: Iterable[Part] = (), floor: float = 0.0
) -> list[Part]:
    """Return all passages of what is of a kind and has this name, each with how much it is like the intent.

    What a search ``found`` keeps its score. The others are below the least of these and ``floor``, by their words.
    """
    split = passages_of(text, kind, name)
    known = {one.passage.text: one.likeness for one in found}
    most = min([floor, *known.values()]) if known else floor
    shared = _shared([one.text for one in split if one.text not in known], intent)
    return [
        Part(place, one, known[one.text] if one.text in known else most * next(shared))
        for place, one in enumerate(split)
    ]


def _shared(texts: Sequence[str], intent: str) -> Iterator[float]:
    """Yield the share of the intent's words that each text has, rare ones counting more (0..1)."""
    asked = _tokens(intent)
    have = [asked & _tokens(text) for text in texts]
    frequency = Counter(word for words in have for word in words)
    rarity = {word: math.log(1 + len(texts) / (frequency[word] + 0.5)) for word in asked}
    total = sum(rarity.values())
    for words in have:
        yield sum(rarity[word] for word in words) / total if total else 0.0


def _tokens(text: str) -> set[str]:
    """Return a text's words by their first letters; of scripts without blanks between words, overlapping pairs."""
    tokens: set[str] = set()
    for found in _TOKEN.finditer(text.casefold()):
        word = found[0]
        if word > "\u0e00" and not word[0].isascii() and _TOKEN.match(word) and re.match(f"[{_BLANKLESS}]", word):
            tokens.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        else:
            tokens.add(word[:_STEM])
    return tokens


def pieces(parts: Sequence[Part], title: str, ends_at: int | None) -> Iterator[str]:
    """Yield the passages, which are in their order, and the marks of what is left out before, between and after them.

    A mark names the headings that the next passage stands under, where they are others than before. ``ends_at`` is the
    place after the source's last passage; None where that is not known.
    """
    expected = 0
    shown: tuple[str, ...] = (title,)
    for place, passage, _ in parts:
        above = _above(passage)
        if place != expected:
            yield mark(above if above != shown[: len(above)] else (), title)
        shown = passage.headings
        yield passage.text
        expected = place + 1
    if expected != ends_at and not parts[-1].passage.text.endswith(MARK):
        yield GAP


def _above(passage: Passage) -> tuple[str, ...]:
    """Return the headings that a passage stands under, without those that it begins with."""
    above = list(passage.headings)
    if passage.opens:
        opening = passage.text.split("\n", 2 * len(above))[: 2 * len(above)]
        while above and any(above[-1] in line for line in opening):
            above.pop()
    return tuple(above)


def mark(headings: Iterable[str], title: str) -> str:
    """Return the mark for what is left out, with the headings of what follows but the source's title."""
    path = " › ".join(" ".join(one.split()) for one in headings if one != title)
    return f"[… {path}]" if path else GAP


def excerpts(parts: Sequence[Part], title: str) -> list[str]:
    """Return shorter texts that may stand for a source, the longest first: of the passages most like the intent, as
    many as have at most so many words as :data:`SIZES` tell. None where nothing is like it."""
    best = sorted((one for one in parts if one.likeness > 0), key=lambda one: (-one.likeness, one.place))
    made: list[str] = []
    for size in SIZES:
        chosen, room = [], size
        for one in best:
            if (words := len(one.passage.text.split())) <= room:
                chosen.append(one)
                room -= words
        if chosen and len(chosen) < len(parts):
            text = "\n".join(pieces(sorted(chosen), title, len(parts)))
            if text not in made:
                made.append(text)
    return made
