"""The check whether a quote was said: word for word, but for case, signs, stutter, fillers and false starts."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Final

import regex

from context_builder.analysis.evidence.negation import negates
from context_builder.analysis.evidence.words import TABLES, joined, plain, word_places, words_of

_GAP: Final = regex.compile(r"\[?(?:…|\.{3,})\]?")
_FILLERS: Final = frozenset(words_of(plain(filler)) for filler in TABLES["fillers"])
_FILLER_BEGINNINGS: Final = frozenset(filler[0] for filler in _FILLERS)
_LONGEST_FILLER: Final = max(map(len, _FILLERS))

_LONGEST_REPEAT: Final = 4
"""Words that somebody says twice in a row before going on."""

_MOST_STEPS: Final = 10_000
"""Steps after which a quote counts as not said: a real one takes a few hundred."""


class MessageWords:
    """The words of a plain message, in which quotes are looked up, each of them once."""

    def __init__(self, text: str) -> None:
        self._plain = text
        self._talk = _Talk(words_of(text))
        self._joined = joined(self._talk.words)
        self._looked_up: dict[str, str | None] = {}

    def said(self, quote: str) -> str | None:
        """Return what was said from the first word of ``quote`` to its last one, in plain; None if it was not.

        That is more than the quote where this leaves words out by an ellipsis.
        """
        if quote not in self._looked_up:
            self._looked_up[quote] = self._said(quote)
        return self._looked_up[quote]

    def _said(self, quote: str) -> str | None:
        pieces = [words for piece in _GAP.split(quote) if (words := words_of(plain(piece)))]
        if len(pieces) == 1 and joined(pieces[0]) in self._joined:
            return plain(quote)
        if not pieces or not all(word in self._talk.places for piece in pieces for word in piece):
            return None
        search, spans = _Search(self._talk), [(0, 0)]
        for piece in pieces:
            found = search.find(piece, spans[-1][1])
            if found is None:
                return None
            spans.append(found)
        return self._plain[self._word_places[spans[1][0]][0] : self._word_places[spans[-1][1] - 1][1]]

    @cached_property
    def _word_places(self) -> list[tuple[int, int]]:
        return word_places(self._plain)


class _Talk:
    """The words of a message, and which of them need not be quoted: stutter, fillers and false starts."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self._skips: dict[int, tuple[int, ...]] = {}

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Where each word was said."""
        places: defaultdict[str, list[int]] = defaultdict(list)
        for place, word in enumerate(self.words):
            places[word].append(place)
        return dict(places)

    @cached_property
    def _past_fillers(self) -> list[int]:
        """The first place, at or after each one, of what is not a filler of one word."""
        past = [*range(len(self.words) + 1)]
        for place in reversed(range(len(self.words))):
            if (self.words[place],) in _FILLERS:
                past[place] = past[place + 1]
        return past

    def skips(self, place: int) -> tuple[int, ...]:
        """Return where talk may go on after what need not be quoted from ``place`` on."""
        if place not in self._skips:
            self._skips[place] = tuple(self._skips_from(place))
        return self._skips[place]

    def _skips_from(self, place: int) -> Iterator[int]:
        words = self.words
        if place >= len(words):
            return
        if words[place] in _FILLER_BEGINNINGS:
            lengths = range(1, _LONGEST_FILLER + 1)
            yield from (place + length for length in lengths if words[place : place + length] in _FILLERS)
        for length in range(1, min(_LONGEST_REPEAT, len(words) - place) + 1):
            again = self._past_fillers[place + length]
            if _begins(words[place : place + length], words[again : again + length]):
                yield again


class _Search:
    """Finds the pieces of one quote in talk, in a limited number of steps."""

    def __init__(self, talk: _Talk) -> None:
        self._talk, self._steps = talk, 0

    def find(self, piece: tuple[str, ...], first: int) -> tuple[int, int] | None:
        """Return the places of the piece's first word, at or after ``first``, and of the one after its last."""
        starts = self._talk.places[piece[0]]
        seen: list[set[int]] = [set() for _ in piece]  # what led to no end from one start leads to none from another
        for at in range(bisect_left(starts, first), len(starts)):
            start = starts[at]
            self._steps += 1
            if self._steps > _MOST_STEPS:
                return None
            if end := self._end(piece, start + 1, seen):
                return start, end
        return None

    def _end(self, piece: tuple[str, ...], second: int, seen: list[set[int]]) -> int | None:
        """Return the place after the piece's last word, of which the first one stands before ``second``."""
        words, places = self._talk.words, {second}
        for wanted, known in zip(piece[1:], seen, strict=False):
            reached, left = set(), list(places - known)
            known |= places
            while left and self._steps <= _MOST_STEPS:
                self._steps += 1
                place = left.pop()
                if place < len(words) and words[place] == wanted:
                    reached.add(place + 1)
                for onward in self._talk.skips(place):
                    if onward not in known:
                        known.add(onward)
                        left.append(onward)
            places = reached
            if not places:
                return None
        return min(places)


def _begins(first: tuple[str, ...], again: tuple[str, ...]) -> bool:
    """Return whether ``first`` is what was said ``again``, its last word perhaps broken off."""
    if len(first) != len(again) or first[:-1] != again[:-1]:
        return False
    return first[-1] == again[-1] or (again[-1].startswith(first[-1]) and not negates(first[-1]))
