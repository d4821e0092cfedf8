"""This module shortens a text without a model so that its subject stays clear: function words go first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

LEVELS: Final = 2
"""1 drops function words; 2 keeps what identifies things and a few content words."""

CONTENT_WORDS: Final = 6
"""Words that stay of a point at level 2 besides what identifies things."""

_FUNCTION_WORDS: Final = frozenset(
    """
    a about above after again all also although am an and any anyway are as at actually basically be because been
    before being below between both but by can could did do does doing done down during each either else even ever
    every few for from further get gets getting go goes going gonna got had has have having he her here hers him his
    how however i if in into is it its itself just kind know let like lot lots make makes many may maybe me mean might
    more most much must my myself now of off oh okay on once one only onto or other our ours out over own perhaps
    please pretty quite rather really right said same say says see seem seems shall she should since so some
    something sort still such sure take than that the their theirs them then there these they thing things think this
    those though through thus to too um uh under until up upon us very want wants was way we well went were what
    whatever when where whether which while who whom whose why will with within would yeah yes yet you your yours
    """.split()
)

_NEGATIONS: Final = frozenset({"no", "not", "never", "none", "without", "cannot", "neither", "nor"})
_EDGES: Final = ".,;:!?\"'()[]{}“”‘’…"
_SENTENCE_END: Final = (".", "!", "?", ":", ";")


class ContentWord(NamedTuple):
    """Holds a word that is no function word: as it stands in its text, bare of punctuation, and in lower case.

    ``identifies`` holds for numbers, names, identifiers and negations.
    """

    spelled: str
    bare: str
    lower: str
    identifies: bool


def condense(text: str, level: int, occurrences: Mapping[str, int] | None = None) -> str:
    """Return ``text`` shortened at ``level`` (1 to :data:`LEVELS`), in its own words and order.

    ``occurrences`` counts the texts in which a word (in lower case) occurs, this one included.
    """
    if level < LEVELS:
        return " ".join(word.spelled for word in telling(text)) or text
    return essence(text, occurrences or {})


def essence(text: str, occurrences: Mapping[str, int], *, content: int = CONTENT_WORDS, most: int | None = None) -> str:
    """Return what identifies things in ``text``, and up to ``content`` other words, ``most`` words in all.

    Of the others those come first that are told only here, and the earlier ones. What ``most`` cuts off is taken
    evenly from the whole text, so that no part of it is lost.
    """
    words = telling(text)
    plain: list[tuple[bool, int]] = []
    seen: set[str] = set()
    for at, word in enumerate(words):
        if not word.identifies:
            plain.append((word.lower in seen or occurrences.get(word.lower, 0) > 1, at))
        seen.add(word.lower)
    identifying = [at for at, word in enumerate(words) if word.identifies]
    if most is not None:
        identifying = _evenly(identifying, most)
        content = min(content, most - len(identifying))
    kept = sorted([*identifying, *(at for _, at in sorted(plain)[:content])])
    return " ".join(words[at].bare for at in kept) or text


def _evenly(places: Sequence[int], most: int) -> list[int]:
    """Return ``most`` of the places, from everywhere among them."""
    if len(places) <= most:
        return list(places)
    return [places[n * len(places) // most] for n in range(most)]


@lru_cache(maxsize=1024)
def telling(text: str) -> tuple[ContentWord, ...]:
    """Return the words of ``text`` that carry meaning, in order."""
    found: list[ContentWord] = []
    begins = True
    for spelled in text.split():
        bare = spelled.strip(_EDGES)
        lower = bare.lower()
        if bare and _identifies(bare, lower, begins=begins):
            found.append(ContentWord(spelled, bare, lower, identifies=True))
        elif bare and lower not in _FUNCTION_WORDS and not _is_contraction(lower):
            found.append(ContentWord(spelled, bare, lower, identifies=False))
        begins = spelled.endswith(_SENTENCE_END)
    return tuple(found)


def _identifies(bare: str, lower: str, *, begins: bool) -> bool:
    """Numbers, acronyms, identifiers, negations, and capitalized words inside a sentence."""
    if lower in _NEGATIONS or lower.endswith(("n't", "n’t")):
        return True
    if bare[1:] != lower[1:] or "_" in bare or (not bare.isalpha() and any(map(str.isdigit, bare))):
        return True
    return bare[0].isupper() and not begins and lower not in _FUNCTION_WORDS


def _is_contraction(lower: str) -> bool:
    stem, apostrophe, _ = lower.replace("’", "'").partition("'")
    return bool(apostrophe) and stem in _FUNCTION_WORDS
