"""Tells whether a quote was said: word for word, but for case, signs, stutter, fillers and false starts."""

from __future__ import annotations

from typing import Final

import regex

from context_builder.analysis.evidence.negation import negates
from context_builder.analysis.evidence.words import TABLES, plain, word_places, words_of

_GAP: Final = regex.compile(r"\[?(?:…|\.{3,})\]?")
_FILLERS: Final = frozenset(words_of(plain(filler)) for filler in TABLES["fillers"])
_FILLER_BEGINNINGS: Final = frozenset(filler[0] for filler in _FILLERS)
_LONGEST_FILLER: Final = max(map(len, _FILLERS))

_LONGEST_REPEAT: Final = 4
"""Words that somebody says twice in a row before going on."""

_MOST_STEPS: Final = 20_000
"""Steps after which a quote counts as not said: a real one takes a few hundred."""


class Message:
    """Holds the words of a message, which comes in plain, for looking up quotes."""

    def __init__(self, text: str) -> None:
        self._plain = text
        self._words = words_of(self._plain)
        self._joined = _joined(self._words)

    def said(self, quote: str) -> str | None:
        """Return what was said from the first word of ``quote`` to its last one, in plain; None if it was not.

        That is more than the quote where this leaves words out by an ellipsis.
        """
        pieces = [words for piece in _GAP.split(quote) if (words := words_of(plain(piece)))]
        if len(pieces) == 1 and _joined(pieces[0]) in self._joined:
            return plain(quote)
        start, end = 0, 0
        for piece in pieces:
            found = _Search(self._words, piece).from_word(end)
            if found is None:
                return None
            start, end = found[0] if piece is pieces[0] else start, found[1]
        if not pieces:
            return None
        places = word_places(self._plain)
        return self._plain[places[start][0] : places[end - 1][1]]


class _Search:
    """Finds a quote in words of which stutter, fillers and false starts may be left out."""

    def __init__(self, words: tuple[str, ...], quote: tuple[str, ...]) -> None:
        self._words, self._quote, self._steps = words, quote, 0

    def from_word(self, first: int) -> tuple[int, int] | None:
        """Return the places of the quote's first word, at or after ``first``, and of the one after its last."""
        for start in range(first, len(self._words)):
            if self._words[start] == self._quote[0] and (end := self._end(start + 1)):
                return start, end
            if self._steps > _MOST_STEPS:
                return None
        return None

    def _end(self, second: int) -> int | None:
        """Return the place after the quote's last word, of which the first one stands before ``second``."""
        places = {second}
        for wanted in self._quote[1:]:
            reached, seen, left = set(), set(places), list(places)
            while left and self._steps <= _MOST_STEPS:
                self._steps += 1
                place = left.pop()
                if place < len(self._words) and self._words[place] == wanted:
                    reached.add(place + 1)
                onward = self._skips(place) - seen
                seen |= onward
                left += onward
            places = reached
            if not places:
                return None
        return min(places)

    def _skips(self, place: int) -> set[int]:
        """Return where talk may go on after what need not be quoted from ``place`` on."""
        words = self._words
        skips: set[int] = set()
        if place >= len(words):
            return skips
        if words[place] in _FILLER_BEGINNINGS:
            lengths = range(1, _LONGEST_FILLER + 1)
            skips = {place + length for length in lengths if words[place : place + length] in _FILLERS}
        for length in range(1, _LONGEST_REPEAT + 1):
            again = place + length
            while again < len(words) and words[again : again + 1] in _FILLERS:
                again += 1
            if _begins(words[place : place + length], words[again : again + length]):
                skips.add(again)
        return skips


def _begins(first: tuple[str, ...], again: tuple[str, ...]) -> bool:
    """Return whether ``first`` is what was said ``again``, its last word perhaps broken off."""
    if len(first) != len(again) or first[:-1] != again[:-1]:
        return False
    return first[-1] == again[-1] or (again[-1].startswith(first[-1]) and not negates(first[-1]))


def _joined(words: tuple[str, ...]) -> str:
    return f" {' '.join(words)} "
