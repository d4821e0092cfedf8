"""A summary point must be grounded: share enough of its distinctive words with the messages it cites.

Refusals, apologies and error texts share nothing with the talk, in whatever language and words they come, unless they
name its topic: those are told by what they say besides (``refusal_words.json``). Words are compared by their character
4-grams, which stand in for a stemmer in any language (McNamee and Mayfield 2004, "Character n-gram tokenization for
European language text retrieval"), and scripts whose words are short and unspaced by character bigrams. What a word
tells is taken from the tokens' vocabulary: its merges were learnt the most frequent first, so a token's rank grows as
the token gets rarer.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

import regex

from context_builder.analysis.analyst import AnalystMessage
from context_builder.analysis.chunking import line_of
from context_builder.analysis.refusal_words import reads_like_a_refusal
from context_builder.quoting import LONGEST_NAME
from context_builder.tokens.counter import token_ranks

SHARED_BITS: Final = 6.5
"""Information that a point must share with its messages: that of a rare word, or of two or three plain ones."""

SHARED_PART: Final = 0.15
"""Part of a point's information that must be shared: abstracts share half, one lucky word among many is chance."""

REPLACEMENT_PART: Final = 0.5
"""Part of a replacement's words, by what they tell, that its messages or the replaced point must tell."""

_COMMON_BITS: Final = 9.0
"""log2 of the rank below which a token tells nothing: single letters, endings, and the commonest words."""

_BITS_OF_A_FIGURE: Final = 2.0
"""For each character of a number or an identifier with digits."""

_TELLING_LENGTH: Final = 6
"""Characters from which a word counts in full: function words are short in every language with an alphabet."""

_NGRAM: Final = 4
_SAME_WORD: Final = 0.6
"""Part of a word's n-grams that must occur in the messages for the word to count as one of theirs."""

_DENSE: Final = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー"
"""Scripts in which a character is a syllable or a word."""

_CASED: Final = r"\p{Lu}\p{Ll}\p{Lt}\p{Nd}"
_RUN: Final = regex.compile(
    rf"(?P<dense>[{_DENSE}]+) | (?P<cased>[{_CASED}][{_CASED}\p{{M}}]*) | [\p{{Lo}}\p{{Lm}}\p{{M}}--[{_DENSE}]]+",
    regex.V1 | regex.VERBOSE,
)
"""Words, or what stands between two spaces or signs in scripts that part no words; each of one kind of script."""

_FIGURE: Final = regex.compile(r"\p{Nd}")


class _Evidence:
    """Holds the words of a text for lookup."""

    def __init__(self, text: str) -> None:
        terms = set(_terms(text))
        self.words = {word for word, _ in terms}
        self.ngrams = {ngram for word, dense in terms if not dense for ngram in _ngrams(word)}


class Grounding:
    """Checks points against the messages of one request, each of which it reads once, and only if it is cited."""

    def __init__(self, messages: Sequence[AnalystMessage]) -> None:
        self._messages = messages
        speakers = {message.speaker[:LONGEST_NAME] for message in messages}
        self._names = {word for speaker in speakers for word, _ in _terms(speaker)}
        self._evidence: dict[int, _Evidence] = {}

    def is_grounded(self, text: str, cited: Iterable[int], known: str = "") -> bool:
        """Return whether ``text`` shares enough with the messages at ``cited``, or is all that one of them says.

        What it says of its writer must be said in them, or in the ``known`` point that it is to replace.
        """
        places = list(cited)
        if _plain(text) in (quote for place in places for quote in _quotes(self._messages[place])):
            return True
        cited_texts = [self._messages[place].text for place in places]
        shares = self._shares(text, [self._read(place) for place in places])
        return shares and not reads_like_a_refusal(text, [*cited_texts, known])

    def may_replace(self, text: str, known: str, cited: Iterable[int]) -> bool:
        """Return whether ``text``, which is grounded, may replace the ``known`` point.

        It must be about the same, say mostly what is in it or in the messages ``cited``, and keep the numbers and
        identifiers: for each one that it drops, another of its kind must come from the messages ``cited``.
        """
        before, evidences = _Evidence(known), [self._read(place) for place in cited]
        if not self._shares(text, [before]) or _share_in_evidence(text, [before, *evidences]) <= REPLACEMENT_PART:
            return False
        evidence_words = {word for evidence in evidences for word in evidence.words}
        identified = _identifiers(known)
        dropped = identified - {word for word, _ in _terms(text)}
        gained = (_identifiers(text) - identified) & evidence_words
        return all(
            sum(word.isdecimal() is number for word in dropped) <= sum(word.isdecimal() is number for word in gained)
            for number in (True, False)
        )

    def _read(self, place: int) -> _Evidence:
        if place not in self._evidence:
            self._evidence[place] = _Evidence(self._messages[place].text)
        return self._evidence[place]

    def _shares(self, text: str, evidence: Sequence[_Evidence]) -> bool:
        """Ignore speakers' names: a point may name them without their having said so, as a refusal may.

        Numbers alone are not enough, as an error's code may be one of the talk's.
        """
        identifiers = _identifiers(text)
        information = {
            (word, dense): _bits(word, dense=dense, identifies=word in identifiers)
            for word, dense in _terms(text)
            if word not in self._names
        }
        shared = {word: bits for (word, dense), bits in information.items() if bits and _occurs(word, dense, evidence)}
        if all(word.isdecimal() for word in shared):
            return False
        return math.fsum(shared.values()) >= max(SHARED_BITS, SHARED_PART * math.fsum(information.values()))


def is_told_in(phrase: str, text: str) -> bool:
    """Return whether ``text`` has the words of ``phrase``, or at least most of what these tell."""
    return _share_in_evidence(phrase, [_Evidence(text)]) > 1 / 2


def _share_in_evidence(text: str, evidence: Sequence[_Evidence]) -> float:
    """Return the part of the words of ``text``, by information, that ``evidence`` has; 0 without words."""
    identifiers = _identifiers(text)
    information = {
        (word, dense): 1.0 + _bits(word, dense=dense, identifies=word in identifiers) for word, dense in _terms(text)
    }
    found = math.fsum(bits for (word, dense), bits in information.items() if _occurs(word, dense, evidence))
    return found / math.fsum(information.values()) if information else 0.0


def _occurs(word: str, dense: bool, evidence: Sequence[_Evidence]) -> bool:  # noqa: FBT001 (as _terms gives it)
    if any(word in each.words for each in evidence):
        return True
    if dense or len(word) < _NGRAM or _FIGURE.search(word):
        return False
    found = [any(ngram in each.ngrams for each in evidence) for ngram in _ngrams(word)]
    return sum(found) >= _SAME_WORD * len(found)


@lru_cache(maxsize=8_192)
def _bits(word: str, *, dense: bool, identifies: bool) -> float:
    """Return how much the word tells, in bits."""
    if _FIGURE.search(word):
        return _BITS_OF_A_FIGURE * len(word)
    ranks = token_ranks(word if dense else f" {word}")
    bits = math.fsum(max(0.0, math.log2(rank + 1) - _COMMON_BITS) for rank in ranks)
    if dense:
        return bits / 2
    return bits if identifies else bits * min(1.0, (len(word) - 1) / (_TELLING_LENGTH - 1))


def _terms(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the caseless words of ``text``, and (marked as dense) each two neighbours of dense scripts."""
    for match in _runs(text):
        run = match.group().casefold()
        if match.lastgroup == "dense":
            yield from ((run[at : at + 2], True) for at in range(len(run) - 1))
        else:
            yield run, False


def _ngrams(word: str) -> Iterator[str]:
    padded = f"^{word}"
    return (padded[at : at + _NGRAM] for at in range(max(1, len(padded) - _NGRAM + 1)))


def _identifiers(text: str) -> set[str]:
    runs = (match.group() for match in _runs(text) if match.lastgroup == "cased")
    return {run.casefold() for run in runs if run[1:] != run[1:].lower() or _FIGURE.search(run)}


def _runs(text: str) -> Iterator[regex.Match[str]]:
    yield from _RUN.finditer(unicodedata.normalize("NFKC", text))


def _quotes(message: AnalystMessage) -> Iterator[str]:
    """Yield a message's text as it is, and as a prompt quotes it."""
    yield _plain(message.text)
    yield _plain(line_of(message.speaker, message.text))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
