"""The share of a text's words that other texts have too, each word weighed by what it tells, in any language.

Words are compared by their character 4-grams, which stand in for a stemmer (McNamee and Mayfield 2004, "Character
n-gram tokenization for European language text retrieval"), and scripts whose words are short and unspaced by character
bigrams. What a word tells is taken from the tokens' vocabulary: its merges were learnt the most frequent first, so a
token's rank grows as the token gets rarer.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Final

import regex

from context_builder.analysis.evidence.words import CheckedText
from context_builder.tokens.counter import token_ranks

_COMMON_BITS: Final = 9.0
"""log2 of the rank below which a token tells nothing: single letters, endings, and the commonest words."""

_BITS_OF_A_FIGURE: Final = 2.0
"""For each character of a number or an identifier with digits."""

_TELLING_LENGTH: Final = 6
"""Characters from which a word counts in full: function words are short in every language with an alphabet."""

_NGRAM: Final = 4
_SAME_WORD: Final = 0.6
"""Part of a word's n-grams that must occur elsewhere for the word to count as said there."""

_DENSE: Final = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー"
"""Scripts in which a character is a syllable or a word."""

_CASED: Final = r"\p{Lu}\p{Ll}\p{Lt}\p{Nd}"
_RUN: Final = regex.compile(
    rf"(?P<dense>[{_DENSE}]+) | (?P<cased>[{_CASED}][{_CASED}\p{{M}}]*) | [\p{{Lo}}\p{{Lm}}\p{{M}}--[{_DENSE}]]+",
    regex.V1 | regex.VERBOSE,
)
"""Words, or what stands between two spaces or signs in scripts that part no words; each of one kind of script."""

_FIGURE: Final = regex.compile(r"\p{Nd}")


class Terms:
    """Texts that are asked how much of another text they say."""

    def __init__(self, readings: Iterable[CheckedText]) -> None:
        self._texts = [reading.spaced for reading in readings]

    def has(self, word: str, dense: bool = False) -> bool:  # noqa: FBT001, FBT002 (as _terms gives it)
        """Return whether a caseless word was said, perhaps in another form."""
        whole = word if dense else f" {word} "
        if any(whole in text for text in self._texts):
            return True
        if dense or len(word) < _NGRAM or _FIGURE.search(word):
            return False
        ngrams = list(_ngrams(word))
        return sum(any(ngram in text for text in self._texts) for ngram in ngrams) >= _SAME_WORD * len(ngrams)

    def share_of(self, text: str, *, without: Collection[str] = ()) -> float | None:
        """Return the part of what the words of ``text`` tell that was said; None if they tell nothing.

        Numbers count for nothing, as the code of an error may be one of the talk's, and neither do words ``without``.
        """
        told = {term: _bits(*term) for term in set(_terms(text)) if term[0] not in without and not term[0].isdecimal()}
        total = math.fsum(told.values())
        return math.fsum(bits for term, bits in told.items() if bits and self.has(*term)) / total if total else None


def is_told_in(phrase: str, text: str) -> bool:
    """Return whether ``text`` has the words of ``phrase``, or at least most of what these tell."""
    said = Terms([CheckedText(text)])
    told = {term: 1.0 + _bits(*term) for term in set(_terms(phrase))}
    return math.fsum(bits for term, bits in told.items() if said.has(*term)) > math.fsum(told.values()) / 2


def caseless_words(texts: Iterable[str]) -> frozenset[str]:
    """Return the words of the texts as they are compared."""
    return frozenset(word for text in texts for word, _ in _terms(text))


@lru_cache(maxsize=8_192)
def _bits(word: str, dense: bool) -> float:  # noqa: FBT001 (as _terms gives it)
    """Return how much the word tells, in bits."""
    if _FIGURE.search(word):
        return _BITS_OF_A_FIGURE * min(len(word), _TELLING_LENGTH)
    ranks = token_ranks(word if dense else f" {word}")
    bits = math.fsum(max(0.0, math.log2(rank + 1) - _COMMON_BITS) for rank in ranks)
    return bits / 2 if dense else bits * min(1.0, (len(word) - 1) / (_TELLING_LENGTH - 1))


def _terms(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the caseless words of ``text``, and (marked as dense) each two neighbours of dense scripts."""
    for match in _RUN.finditer(unicodedata.normalize("NFKC", text)):
        run = match.group().casefold()
        if match.lastgroup == "dense":
            yield from ((run[at : at + 2], True) for at in range(len(run) - 1))
        else:
            yield run, False


def _ngrams(word: str) -> Iterator[str]:
    padded = f" {word}"
    return (padded[at : at + _NGRAM] for at in range(max(1, len(padded) - _NGRAM + 1)))
