"""A profile holds the vocabulary of one of the eighteen domains: one file each, written by hand.

A file begins with the domain's name. Under each weight (4: names the field; 3: seldom heard
outside it; 2: typical; 1: a hint) stand terms of one or more words; ``*`` ends a prefix that
any word may complete. A term may stand in several files. The terms come from general knowledge
of the fields, not from any corpus.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

from context_builder.analysis.text.vocabulary import GENERAL_WORDS
from context_builder.analysis.text.words import REMEMBERED, plain_words
from context_builder.domains import DOMAINS

Weights = dict[int, float]
"""Weight of a term for each domain (by index in ``DOMAINS``) that it speaks for."""

SHORTEST_PREFIX: Final = 3
LONGEST_PREFIX: Final = 20


@dataclass(frozen=True, slots=True)
class Lexicon:
    """All profiles in one: terms by their first word, longest first, and prefixes."""

    words: dict[str, Weights]
    phrases: dict[str, tuple[tuple[tuple[str, ...], Weights], ...]]
    prefixes: dict[str, Weights]

    def weights_of(self, word: str) -> Weights | None:
        """Return the weights of a single word: its own, else those of its longest listed prefix."""
        return self.words.get(word) or _weights_of_prefix(word[:LONGEST_PREFIX])


@lru_cache(REMEMBERED)
def _weights_of_prefix(start: str) -> Weights | None:
    """Return the weights of the longest prefix that is listed of a word with this ``start``."""
    prefixes = lexicon().prefixes
    lengths = range(len(start), SHORTEST_PREFIX - 1, -1)
    return next((prefixes[start[:length]] for length in lengths if start[:length] in prefixes), None)


@cache
def lexicon() -> Lexicon:
    """Return the profiles, which are read once."""
    singles: dict[str, Weights] = {}
    prefixes: dict[str, Weights] = {}
    phrases: dict[tuple[str, ...], Weights] = {}
    for entry in files(__package__).iterdir():
        if not entry.name.endswith(".txt"):
            continue
        domain, *blocks = entry.read_text("utf-8").strip().split("\n\n")
        index = DOMAINS.index(domain)
        for block in blocks:
            weight, _, terms = block.partition(":")
            for term in terms.split(","):
                parts = tuple(plain_words(term))
                if term.endswith("*"):
                    prefixes.setdefault(term.strip().rstrip("*"), {})[index] = float(weight)
                elif len(parts) == 1:
                    singles.setdefault(parts[0], {})[index] = 1.0 if parts[0] in GENERAL_WORDS else float(weight)
                else:
                    phrases.setdefault(parts, {})[index] = float(weight)
    return Lexicon(singles, _by_first_word(phrases), prefixes)


def _by_first_word(
    phrases: dict[tuple[str, ...], Weights],
) -> dict[str, tuple[tuple[tuple[str, ...], Weights], ...]]:
    grouped: dict[str, list[tuple[tuple[str, ...], Weights]]] = {}
    for parts, weights in sorted(phrases.items(), key=lambda item: -len(item[0])):
        grouped.setdefault(parts[0], []).append((parts, weights))
    return {first: tuple(terms) for first, terms in grouped.items()}
