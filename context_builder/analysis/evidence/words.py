"""How a text of any language is cut into words, and the words that accept or settle something."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from importlib.resources import files
from typing import Any, Final

import regex

from context_builder.quoting import visible

TABLES: Final[Mapping[str, Any]] = json.loads((files(__package__) / "words.json").read_text("utf-8"))

UNSPACED: Final = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー"
"""Scripts that put no blanks between words: each of their characters counts as a word."""

_WORD: Final = regex.compile(
    rf"[{UNSPACED}]\p{{M}}* | [\p{{L}}\p{{M}}\p{{N}}--[{UNSPACED}]]+", regex.V1 | regex.VERBOSE
)
_UNUSUAL: Final = regex.compile(rf"[\p{{M}}\p{{No}}{UNSPACED}]")
"""Characters that :mod:`re`, which is some times as fast, takes for signs, or for parts of longer words."""
_SIGNS: Final = re.compile(r"[\W_]+")
_SIGNS_AMONG_MARKS: Final = regex.compile(r"[^\p{L}\p{M}\p{N}]+")

_WRITTEN_OUT: Final = {"can't": "can not", "won't": "will not", "n't": " not", "cannot": "can not"}
_SPELLINGS: Final = str.maketrans({"’": "'", "ʼ": "'", "`": "'", "\u0640": None, "\u0307": None})
"""Apostrophes are one; the Arabic stretch and the dot that a lower-case Turkish İ leaves go."""


def plain(text: str) -> str:
    """Return ``text`` in one case and width, its ``n't`` written out."""
    folded = unicodedata.normalize("NFKC", visible(text)).casefold().translate(_SPELLINGS)
    for short, long in _WRITTEN_OUT.items():
        folded = folded.replace(short, long)
    return folded


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text."""
    return tuple(_WORD.findall(text) if _UNUSUAL.search(text) else _SIGNS.sub(" ", text).split())


def joined(words: Iterable[str]) -> str:
    """Return words in a row with a blank before and after each, so that one is found as a whole."""
    return f" {' '.join(words)} "


def word_places(text: str) -> list[tuple[int, int]]:
    """Return where each of the words of a :func:`plain` text begins and ends."""
    return [match.span() for match in _WORD.finditer(text)]


class CheckedText:
    """A text in the forms that checks look into, each made when it is first looked at."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def plain(self) -> str:
        """The text in one case and width."""
        return plain(self.text)

    @cached_property
    def spaced(self) -> str:
        """The plain text with a blank before and after each word that had a blank or a sign there."""
        signs = _SIGNS_AMONG_MARKS if _UNUSUAL.search(self.plain) else _SIGNS
        return f" {' '.join(signs.sub(' ', self.plain).split())} "


class Vocabulary:
    """Whether a text has one of its words, or one of its parts where scripts part no words."""

    def __init__(self, words: Collection[str], parts: Collection[str] = ()) -> None:
        self._words = frozenset(word for each in words for word in words_of(plain(each)))
        self._part = regex.compile("|".join(regex.escape(plain(part)) for part in parts)) if parts else None

    def found_in(self, text: str) -> frozenset[str]:
        """Return which of the words, and which first one of the parts, the :func:`plain` text has."""
        part = self._part.search(text) if self._part else None
        return self._words.intersection(words_of(text)) | ({part.group()} if part else set())

    def occurs_in(self, text: str) -> bool:
        """Return whether the :func:`plain` text has one of the words."""
        return not self._words.isdisjoint(words_of(text)) or bool(self._part and self._part.search(text))


SETTLING: Final = Vocabulary(TABLES["settling"], TABLES["settling_parts"])
"""Words that announce a decision."""
ACCEPTING: Final = Vocabulary(TABLES["accepting"], TABLES["accepting_parts"])
"""Words that accept what somebody proposed."""
