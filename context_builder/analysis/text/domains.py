"""Domains of messages are scored by hand-written vocabularies.

Every term heard speaks for its domains with the square of its weight in the profiles; the
longest term at a place wins, so that "neural network" says nothing for medicine. A term that
speaks for many domains tells less, and so does one heard again and again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from context_builder.analysis.text.keywords import REMEMBERED, SHORT
from context_builder.analysis.text.profiles import Lexicon, Weights, lexicon
from context_builder.analysis.text.vocabulary import FUNCTION_WORDS, GENERAL_WORDS, VERBS
from context_builder.analysis.text.words import plain_words, stem
from context_builder.domains import DOMAINS

MAX_CHARACTERS: Final = 30_000
"""Most characters of a message that are scored; its field is clear by then."""

RECENCY: Final = 0.9
"""Weight of a message relative to the one after it."""

SHARPNESS: Final = 1.2
"""Softmax exponent of the square root of evidence, by which a lead in it counts."""

DOUBT: Final = 4.0
"""Evidence that halves the confidence when it is all there is: one typical term (2 squared)."""

DOUBT_PER_WORD: Final = 0.1
"""Evidence that so much small talk gathers by chance; without it, long chatter would have a topic."""

ACTIVE: Final = 0.2
"""A domain is active from this confidence on."""

MAX_ACTIVE: Final = 4
"""Most domains active at once."""


_PLAIN_STEMS: Final = frozenset(map(stem, FUNCTION_WORDS | GENERAL_WORDS | VERBS))

KNOWN_PART: Final = 0.5
"""Part of a text's words that are known of plain talk in the vocabularies' language."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The weight found for each of ``DOMAINS``, and the number of words it was found in (older ones count less)."""

    scores: tuple[float, ...]
    words: float

    def confidence(self) -> dict[str, float]:
        """Return active domains with their confidence, highest first; none where no word indicates one.

        A confidence is meant as the chance that the domain is right: its share among all domains
        times how far the evidence exceeds what small talk gathers. Its constants were set on
        labelled texts, where it is 0.07 off on average; the vocabularies were not made from them.
        """
        damped = [SHARPNESS * math.sqrt(found) for found in self.scores]
        highest = max(damped)
        exponentials = [math.exp(value - highest) for value in damped]
        doubt = DOUBT + DOUBT_PER_WORD * self.words
        total = sum(exponentials)
        confident = [
            (round(share / total * found / (found + doubt), 3), domain)
            for share, found, domain in zip(exponentials, self.scores, DOMAINS, strict=True)
        ]
        confident.sort(key=lambda item: -item[0])
        return {domain: value for value, domain in confident[:MAX_ACTIVE] if value >= ACTIVE}


def score_domains(texts: Sequence[str]) -> Evidence:
    """Return the evidence in messages given oldest first."""
    times: dict[int, tuple[Weights, float]] = {}
    length = 0.0
    for age, text in enumerate(reversed(texts)):
        spoken, terms = _remembered(text) if len(text) <= SHORT else _read(text)
        fresh = RECENCY**age
        length += fresh * spoken
        for weights in terms:
            times[id(weights)] = weights, times.get(id(weights), (weights, 0.0))[1] + fresh
    scores = [0.0] * len(DOMAINS)
    for weights, count in times.values():
        damped = math.log2(1 + count) / math.sqrt(len(weights))
        for domain, weight in weights.items():
            scores[domain] += damped * weight**2
    return Evidence(tuple(scores), length)


def knows_language(texts: Iterable[str]) -> bool:
    """Return whether texts are in the language of the vocabularies, English, by how many of their words these know."""
    spoken = [word for text in texts for word in plain_words(text[:MAX_CHARACTERS])]
    return bool(spoken) and sum(map(_is_known, spoken)) >= KNOWN_PART * len(spoken)


def _is_known(word: str) -> bool:
    return word in _PLAIN_STEMS or lexicon().weights_of(word) is not None


def _read(text: str) -> tuple[int, tuple[Weights, ...]]:
    """Return how many words a text has, and the weights of its terms."""
    spoken = plain_words(text[:MAX_CHARACTERS])
    return len(spoken), tuple(_terms(spoken, lexicon()))


_remembered = lru_cache(REMEMBERED)(_read)


def _terms(spoken: Sequence[str], known: Lexicon) -> Iterator[Weights]:
    """Yield the weights of the terms in a text, each word used once, the longest term first."""
    at = 0
    while at < len(spoken):
        length, weights = _phrase_at(spoken, at, known) if spoken[at] in known.phrases else (1, None)
        if weights is None:
            weights = known.weights_of(spoken[at])
        if weights is not None:
            yield weights
        at += length


def _phrase_at(spoken: Sequence[str], at: int, known: Lexicon) -> tuple[int, Weights | None]:
    for parts, weights in known.phrases[spoken[at]]:
        if tuple(spoken[at : at + len(parts)]) == parts:
            return len(parts), weights
    return 1, None
