"""The people who speak, recognized by any part or spelling of a name that a model may write."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

import regex

from context_builder.analysis.evidence.overlap import caseless_words
from context_builder.analysis.evidence.words import plain, word_places, words_of

_SHORTEST_NAME: Final = 3
"""Letters by which one word of a name stands for all of it."""

_CLAUSE_END: Final = regex.compile(r"[;；.。!！?？](?!\d)")

MOST_TITLES: Final = 1
"""Words more than a speaker's own that a name may have."""


class People:
    """The names of those who speak."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name: _name_words(name) for name in names if _name_words(name)}
        everybody = [{plain(word) for word in words} for words in self._names.values()]
        self.words = frozenset(word for words in everybody for word in words) | caseless_words(self._names)
        self._owners = Counter(word for words in everybody for word in words)
        self._calls: defaultdict[str, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
        for name, words in self._names.items():
            alone = [(word,) for word in words if self._tells(word)]
            for call in dict.fromkeys([words, *alone]):
                self._calls[call[0]].append((name, call))

    def named_in(self, text: str) -> Iterator[str]:
        """Yield the people whom ``text`` names, by their whole name or by the one word of it that is theirs alone."""
        yield from dict.fromkeys(name for name, _ in self.clauses(text))

    def clauses(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield whom ``text`` names, and what it says after the name, up to the next name or the end of the clause."""
        text = unicodedata.normalize("NFKC", text)
        places = word_places(text)
        words = [text[start:end] for start, end in places]
        named: dict[int, tuple[int, str]] = {}
        last = 0
        for at, word in enumerate(words):
            calls = [
                (at + len(call), name)
                for name, call in self._calls.get(word, ())
                if call == (*words[at : at + len(call)],)
            ]
            if calls and at >= last:
                named[at] = last, _ = max(calls)
        ends = [*(places[at][0] for at in named), len(text)]
        for (after, name), end in zip(named.values(), ends[1:], strict=True):
            yield name, _CLAUSE_END.split(text[places[after - 1][1] : end], maxsplit=1)[0]

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
