"""Words of a text: where they are, how they are compared, and how much they say.

A word keeps together what a reader takes as one: ``GPT-4o``, ``C++``, ``BRCA1``, ``p53``,
``data-driven``, ``x86_64``, ``TCP/IP``, ``3.5``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from context_builder.analysis.text.vocabulary import FUNCTION_WORDS, GENERAL_WORDS, VERBS

_WORD: Final = re.compile(r"[^\W_]+(?:(?:['’\-‑/._&]|(?<=\d),(?=\d))[^\W_]+)*(?:\+\+|#)?(?![^\W_])|[^\W_]+")
_SPACE: Final = re.compile(r"[ \t\r\n\f\v]*")
_DIGITS: Final = re.compile(r"\d")
_NAMES: Final = frozenset(("IT", "US", "WHO"))
"""Function words that are names when in capitals."""

LONGEST_WORD: Final = 40
"""Characters; what is longer (a URL, a run of text without spaces) is no keyword."""


@dataclass(frozen=True, slots=True)
class Word:
    """Holds one word as it stands in a text; ``joined`` when only space parts it from the word before."""

    text: str
    lower: str
    start: int
    end: int
    joined: bool


def words(text: str) -> Iterator[Word]:
    """Yield the words of ``text`` in order."""
    before = -1
    for match in _WORD.finditer(text):
        start, end = match.span()
        joined = before >= 0 and (gap := _SPACE.match(text, before)) is not None and gap.end() == start
        spelled = match.group()
        yield Word(spelled, spelled.lower().replace("’", "'").replace("‑", "-"), start, end, joined)
        before = end


def stem(lower: str) -> str:
    """Return ``lower`` without its plural ending or possessive, so that ``genes`` and ``gene`` are one.

    The S-stemmer of Harman (1991), "How effective is suffixing?": it never joins words of
    different meaning the way stronger stemmers do.
    """
    if lower.endswith("'s"):
        lower = lower[:-2]
    if len(lower) < 4 or not lower.endswith("s"):
        return lower
    if lower.endswith("ies") and lower[-4] not in "ae":
        return lower[:-3] + "y"
    if lower.endswith(("sses", "xes", "ches", "shes", "zes")):
        return lower[:-2]
    if lower.endswith(("us", "ss", "is")):
        return lower
    return lower[:-1]


def is_identifier(spelled: str) -> bool:
    """Return whether the spelling alone marks a term: ``DNA``, ``BRCA1``, ``GPT-4o``, ``TextRank``, ``mRNA``."""
    letters = spelled.strip("0123456789.,-/")
    if not letters:
        return False
    return any(char.isupper() for char in spelled[1:]) or bool(_DIGITS.search(spelled))


def is_number(lower: str) -> bool:
    """Return whether there are digits and no letters."""
    return bool(_DIGITS.search(lower)) and not any(char.isalpha() for char in lower)


def is_content(word: Word) -> bool:
    """Return whether the word says something of its own: no function word, no stray letter (but vitamin C)."""
    if word.lower in FUNCTION_WORDS:
        return word.text in _NAMES
    return len(word.text) > 1 or word.text.isdigit() or word.text.isupper()


def specificity(word: Word) -> float:
    """Return how much a word tells about the topic, 0..1, from its form alone.

    Longer words are rarer (Zipf's law of abbreviation); an identifier is a term whatever its length.
    """
    if is_identifier(word.text):
        return 1.0
    if word.lower in GENERAL_WORDS or word.lower in VERBS:
        return 0.25
    if is_number(word.lower):
        return 0.2
    return min(1.0, 0.4 + 0.08 * len(word.lower))


_PLAIN: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*(?:\+\+|#)?")


def plain_words(text: str) -> list[str]:
    """Return the stems of ``text`` with compounds taken apart, as the domains' profiles spell them."""
    return [stem(found) for found in _PLAIN.findall(text.lower().replace("’", "'"))]


DEFAULT_LIMIT: Final = 2000
"""Stems remembered; about 200 kB."""


class Recurrence(Mapping[str, int]):
    """Counts in how many messages each stem has occurred, for the commonest ``limit`` stems or so.

    When twice as many are held, all counts are lowered by the smallest one that has to go, and
    what reaches zero is forgotten: a stem that recurs is never lost to a flood of new ones
    (Misra and Gries 1982, "Finding repeated elements").
    """

    def __init__(self, limit: int = DEFAULT_LIMIT, *, before: Mapping[str, int] | None = None) -> None:
        """Continue from the counts ``before``."""
        self._limit = limit
        self._counts = dict(before or {})

    def add(self, text: str) -> None:
        """Count the stems of one message."""
        for found in {stem(word.lower) for word in words(text) if is_content(word)}:
            self._counts[found] = self._counts.get(found, 0) + 1
        if len(self._counts) > 2 * self._limit:
            self._forget()

    def _forget(self) -> None:
        toll = sorted(self._counts.values(), reverse=True)[self._limit]
        self._counts = {found: count - toll for found, count in self._counts.items() if count > toll}

    def __getitem__(self, found: str) -> int:
        return self._counts[found]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)
