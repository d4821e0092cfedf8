"""How a text of any language is cut into words, which accept or settle something, and which a refusal is made of.

In a refusal, a model or a gateway speaks of itself and of its task. One that names the topic ("I cannot summarize the
budget meeting in Oslo") shares words with the talk, so sharing cannot tell it from a point. It is told by what it says
besides: words of two of the groups in ``refusal_words.json`` that nobody in the talk used. One group alone is an honest
paraphrase ("Bob cannot come" for "I won't make it"). The list is not complete and need not be: a refusal in another
language, or of one group alone, is told by how little of it was said.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
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


_UNSPACED: Final = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]")

SUSPICIOUS: Final = 2
"""Groups of which a point uses words that its messages do not use, from which it is taken for a refusal."""


@cache
def _patterns() -> tuple[regex.Pattern[str], ...]:
    """Return a pattern for each group; compiled at first use, since few processes ask a model."""
    groups: Mapping[str, Sequence[str]] = json.loads((files(__package__) / "refusal_words.json").read_text("utf-8"))
    return tuple(regex.compile("|".join(_alternative(_plain(word)) for word in words)) for words in groups.values())


def _alternative(word: str) -> str:
    """Return a pattern in which ``*`` at an end stands for the rest of a word, else for up to twelve words."""
    if _UNSPACED.search(word):
        return str(regex.escape(word))
    start, end = "" if word.startswith("*") else r"(?<!\w)", "" if word.endswith("*") else r"(?!\w)"
    around = (r"\s+".join(map(regex.escape, part.split())) for part in word.strip("*").split(" * "))
    inner = r"\s+(?:\S+\s+){0,12}".join(around).replace(r"\*", r"\w*")
    return f"{start}{inner}{end}"


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().replace("’", "'")


def reads_like_a_refusal(text: str, sources: Iterable[str], groups: int = SUSPICIOUS) -> bool:
    """Return whether ``text`` speaks of its writer's task in a way that no text of ``sources`` does.

    It takes words of as many ``groups``.
    """
    text = _plain(text)
    found = [pattern for pattern in _patterns() if pattern.search(text)]
    if len(found) < groups:
        return False
    said = [_plain(source) for source in sources]
    return sum(not any(map(pattern.search, said)) for pattern in found) >= groups
