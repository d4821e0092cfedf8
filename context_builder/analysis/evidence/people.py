"""Knows who speaks, by whatever part or spelling of a name a model writes."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import regex

from context_builder.analysis.evidence.overlap import caseless_words
from context_builder.analysis.evidence.words import plain, words_of

_SHORTEST_NAME: Final = 3
"""Letters by which one word of a name stands for all of it."""

MOST_TITLES: Final = 1
"""Words more than a speaker's own that a name may have."""


class People:
    """Knows the names of those who speak."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name: _name_words(name) for name in names if _name_words(name)}
        everybody = [{plain(word) for word in words} for words in self._names.values()]
        self.words = frozenset(word for words in everybody for word in words) | caseless_words(self._names)
        self._owners = Counter(word for words in everybody for word in words)

    def named_in(self, text: str) -> Iterator[str]:
        """Yield the people whom ``text`` names, by their whole name or by the one word of it that is theirs alone."""
        said = f" {' '.join(_name_words(text))} "
        for name, words in self._names.items():
            if f" {' '.join(words)} " in said or any(f" {word} " in said for word in words if self._tells(word)):
                yield name

    def without_names(self, text: str) -> str:
        """Return a plain text without whole names, whose numbers count nothing: Speaker 2."""
        for words in self._names.values():
            if any(map(str.isdecimal, words)):
                name = r"[\s_\-]+".join(regex.escape(plain(word)) for word in words)
                text = regex.sub(rf"(?<![\p{{L}}\p{{N}}]){name}(?![\p{{L}}\p{{N}}])", " ", text)
        return text

    def _tells(self, word: str) -> bool:
        return len(word) >= _SHORTEST_NAME and word[0].isupper() and self._owners[plain(word)] == 1


def _name_words(text: str) -> tuple[str, ...]:
    return words_of(unicodedata.normalize("NFKC", text))


def is_one_of(name: str, speakers: Iterable[str]) -> bool:
    """Return whether a name is one of the speakers', be it without a part of theirs or with a title more."""
    return speaker_of(name, speakers) is not None


def speaker_of(name: str, speakers: Iterable[str]) -> str | None:
    """Return the speaker who is called by ``name``; None if there is none."""
    words = frozenset(words_of(plain(name)))
    for speaker in speakers:
        theirs = frozenset(words_of(plain(speaker)))
        is_part = words <= theirs or (theirs <= words and len(words - theirs) <= MOST_TITLES)
        if name.casefold().split() == speaker.casefold().split() or (words and theirs and is_part):
            return speaker
    return None
