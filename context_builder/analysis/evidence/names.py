"""Names and identifiers in a sentence, whether they were said, and the people who speak.

People are recognized by any part or spelling of a name that a model may write.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import regex

from context_builder.analysis.evidence.figures import value_of, with_digits_repeated
from context_builder.analysis.evidence.overlap import caseless_words
from context_builder.analysis.evidence.words import TABLES, UNSPACED, CheckedText, plain, word_places, words_of
from context_builder.quoting import visible
from context_builder.tokens.counter import token_ranks

_RUN: Final = regex.compile(rf"[\p{{L}}\p{{M}}\p{{N}}_--[{UNSPACED}]]+", regex.V1)
_DIGIT: Final = regex.compile(r"\p{Nd}")
_COUNTED: Final = regex.compile(r"\p{Nd}+[\p{Ll}\p{Lo}\p{M}]{1,4}")
"""A number with what it counts, such as 10am, 3rd or 5th."""
_INNER: Final = regex.compile(r"(?<!^)\p{Lu}")
_SENTENCE_END: Final = regex.compile(
    r"(?:^|(?<!\b\p{Lu}\p{Ll}{0,3})\.|[?!:;…。\n]|[\"“”„«»‘(\[—–])[\s\"“”„«»‘’)(\[]*\Z"
)
_BEFORE: Final = 12
"""Characters before a word that tell whether it begins a sentence."""
_WORD_BEFORE: Final = regex.compile(r"(\p{L}+)\.?\s+\Z")

_NO_NAMES: Final = frozenset({"i", "ok", "am", "pm"})
_GERMAN: Final = frozenset(TABLES["german"])
_ENGLISH: Final = frozenset({"the", "of", "and", "to", "that"})
_GERMAN_TITLES: Final = frozenset({"herr", "herrn", "frau", "firma", "dr", "prof"})

_MORE_USUAL: Final = 4
"""How many times higher a token's rank is for the spelling that is not the usual one."""

_SHORTEST_STEM: Final = 3
_LONGEST_ENDING: Final = 3
"""Letters by which a name is longer in another case or as an adjective."""

MOST_NAMES: Final = 60
"""Names of a sentence that are looked up; a sentence of a summary has a handful."""


class Name(NamedTuple):
    """A name or an identifier, and whether it surely is one: any word is capitalised at the beginning of a sentence."""

    word: str
    certain: bool


def names_in(text: str) -> Iterator[Name]:
    """Yield the names and identifiers of a sentence.

    In German all nouns are capitalised, so there only what follows a title or is spelled like an identifier is certain.
    """
    text = unicodedata.normalize("NFKC", visible(text))
    words = frozenset(words_of(text.casefold()))
    german = not words.isdisjoint(_GERMAN) and words.isdisjoint(_ENGLISH)
    shouted = text.upper() == text
    for match in _RUN.finditer(text):
        word = match.group()
        if word.casefold() in _NO_NAMES or word.isdecimal() or _COUNTED.fullmatch(word):
            continue
        if "_" in word.strip("_") or _DIGIT.search(word):
            yield Name(word, certain=True)
        elif shouted or not word[0].isupper():
            if not shouted and _INNER.search(word):
                yield Name(word, certain=True)
        elif _INNER.search(word):
            yield Name(word.removesuffix("s"), certain=True)
        elif _begins_sentence(text, match.start()):
            if _is_usually_capitalised(word):
                yield Name(word, certain=False)
        else:
            yield Name(word, certain=not german or _has_title(text, match.start()))


class NamesSaid:
    """What was said, in which names are looked up."""

    def __init__(self, readings: Iterable[CheckedText]) -> None:
        self._readings = [*readings]
        self._said = "".join(map(_parted, self._readings))

    def has(self, word: str) -> bool:
        """Return whether the name was said, perhaps with another ending, with blanks inside or its number in words."""
        word = plain(word)
        shorter = (word[:length] for length in _stem_lengths(word))
        return (
            not _script(word)
            or any(f" {each} " in self._said for each in (word, f"{word}s", *shorter))
            or self._starts(word, _LONGEST_ENDING)
            or self.spells(word)
        )

    def spells(self, word: str) -> bool:
        """Return whether a plain word was said with blanks inside, or with its numbers in words."""
        return any(self._is_spelled(word, said) for said in (self._said, self._in_digits))

    def has_like(self, word: str) -> bool:
        """Return whether a word with the same stem was said, or none in the name's script."""
        word = plain(word)
        stems = (word[:length] for length in _stem_lengths(word) if length > _SHORTEST_STEM)
        return any(self._starts(stem, _LONGEST_ENDING) for stem in stems) or _script(word) not in self._scripts

    def _starts(self, stem: str, ending: int) -> bool:
        """Return whether a word of the stem and at most that many letters more was said."""
        if len(stem) < _SHORTEST_STEM or f" {stem}" not in self._said:
            return False
        return regex.search(rf" {regex.escape(stem)}\S{{0,{ending}}} ", self._said) is not None

    @staticmethod
    def _is_spelled(word: str, said: str) -> bool:
        letters = [regex.escape(c) for c in word if c.isalnum()]
        if not 1 < len(letters) <= _LONGEST_SPELLED:
            return False
        return regex.search(f" {' ?'.join(letters)} ", said) is not None

    @cached_property
    def _in_digits(self) -> str:
        """What was said, with its numbers in digits: ``B seven`` is how people read out B7."""
        return f" {' '.join(_with_digits(with_digits_repeated(self._said).split()))} "

    @cached_property
    def _scripts(self) -> frozenset[str]:
        return frozenset(_script(word) for reading in self._readings for word in reading.spaced.split())


def _parted(reading: CheckedText) -> str:
    """Return a text with blanks around its words, also around those of another script within one without blanks."""
    return f" {' '.join(words_of(reading.plain))} " if _DENSE.search(reading.plain) else reading.spaced


_DENSE: Final = regex.compile(rf"[{UNSPACED}]")
_ZEROS: Final = frozenset({"oh", "o"})
"""How a zero is said among digits."""

_LONGEST_SPELLED: Final = 40
"""Letters of an identifier that is looked for letter by letter."""


def _stem_lengths(word: str) -> range:
    return range(max(_SHORTEST_STEM, len(word) - _LONGEST_ENDING), len(word))


def _with_digits(words: Sequence[str]) -> Iterator[str]:
    """Yield the words, with numbers of one word or two in digits."""
    values = [value_of(word) for word in words]
    for place, word in enumerate(words):
        beside = [value for value in values[max(0, place - 1) : place + 2] if value is not None]
        if word in _ZEROS and any(value < 10 for value in beside):
            values[place] = 0.0
    tens = 0.0
    for word, value, after in zip(words, values, [*values, None][1:], strict=True):
        if value is not None and value >= 20 and value % 10 == 0 and after is not None and 0 < after < 10:
            tens = value
        elif value is None:
            yield word
        else:
            yield f"{tens + value:g}"
            tens = 0.0


def _script(word: str) -> str:
    """Return the script of a word's first letter; nothing without letters."""
    letter = next((c for c in word if c.isalpha()), "")
    return unicodedata.name(letter, "?").partition(" ")[0] if letter else ""


def _begins_sentence(text: str, start: int) -> bool:
    return _SENTENCE_END.search(text[max(0, start - _BEFORE) : start]) is not None


def _has_title(text: str, start: int) -> bool:
    before = _WORD_BEFORE.search(text[max(0, start - _BEFORE) : start])
    return before is not None and before[1].casefold() in _GERMAN_TITLES


def _is_usually_capitalised(word: str) -> bool:
    """Return whether the tokens' vocabulary knows the word with a capital and hardly without."""
    capital, small = token_ranks(f" {word}"), token_ranks(f" {word.lower()}")
    return len(capital) == 1 and (len(small) > 1 or small[0] > _MORE_USUAL * capital[0])


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
