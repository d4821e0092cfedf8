"""The checks whether a sentence says no where others say yes, or makes certain what was guessed (``words.json``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import regex

from context_builder.analysis.evidence.words import TABLES, Vocabulary, joined, words_of

_NEGATING: Final = Vocabulary(TABLES["negations"], TABLES["negation_parts"])
_NO_NEGATION: Final = regex.compile("|".join(map(regex.escape, TABLES["not_negations"])))
_LIMITING: Final = Vocabulary(TABLES["limits"], TABLES["limit_parts"])
"""Words that say no without a "not": only, unless, instead, refuses, doubts."""

_BOUNDS: Final = [tuple(Vocabulary((), side) for side in sides) for sides in TABLES["bounds"]]
"""Words of which the one says the opposite of the other: at least and at most, before and after."""

_TURKISH: Final = regex.compile(r"[ığşçöü]")
_TURKISH_NOT: Final = regex.compile(
    r"(?<=\p{L}{2})(?:m[ıiuü]yor|me(?:di|z|yecek|yeceğ|miş|yiz|dik)|ma(?:dı|z|yacak|yacağ|mış|yız|dık))"
)

_NEGATED: Final = 4
"""Words that a negation before them is about."""

_SHORTEST_TURNED: Final = 4
_STEM: Final = 5
"""Letters of a word, and of its beginning, by which it is known in a clause with and in one without a negation."""

_CLAUSE_END: Final = regex.compile(
    r"[.,;:?!،؛؟。、，；：？！…—–\n]| (?:but|because|since|aber|weil|denn|mais|car|pero|porque|ma|perché) "
)


def negates_otherwise(text: str, quotes: Sequence[str], known: Sequence[str] = ()) -> bool:
    """Return whether a text says no where the quotes do not, or the other way round; all of them are plain.

    It may also have a negation that is ``known``, and say no in other words than they: only, instead, refuse.
    """
    here, there = negates(text), any(map(negates, quotes))
    if here != there:
        ours, theirs = _LIMITING.found_in(text), _LIMITING.found_in(" ".join(quotes))
        excused = any(map(negates, known)) or theirs - ours if here else ours - theirs
        if not excused:
            return True
    return _turns(text, quotes) or _turns_a_bound(text, " ".join(quotes))


def _turns_a_bound(text: str, said: str) -> bool:
    """Return whether the text has "at most" where "at least" was said, or another word of the opposite side."""
    return any(
        here.occurs_in(text) and there.occurs_in(said) and not there.occurs_in(text) and not here.occurs_in(said)
        for one, other in _BOUNDS
        for here, there in ((one, other), (other, one))
    )


def negates(text: str) -> bool:
    """Return whether the :func:`plain` text has a negation."""
    text = _NO_NEGATION.sub(" ", text)
    return _NEGATING.occurs_in(text) or bool(_TURKISH.search(text) and _TURKISH_NOT.search(text))


def _turns(text: str, quotes: Sequence[str]) -> bool:
    """Return whether a word follows a negation in the text and stands apart from any in the quotes, or the reverse."""
    spoken = [quote.replace(",", " ") for quote in quotes]  # a transcript's commas are pauses, no ends of clauses
    ours, theirs = _Negated([text]), _Negated(spoken)
    return bool(ours.following & theirs.apart or theirs.following & ours.apart)


class _Negated:
    """The longer words of texts by their first letters: those that follow a negation, and those that do not."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.following: set[str] = set()
        everything: set[str] = set()
        beside: set[str] = set()
        for clause in (words_of(clause) for text in texts for clause in _clauses(text)):
            stems = [word[:_STEM] if len(word) >= _SHORTEST_TURNED else "" for word in clause]
            nots = [place for place, word in enumerate(clause) if negates(word)]
            self.following |= {stem for place in nots for stem in stems[place + 1 : place + 1 + _NEGATED]}
            beside |= set(stems) if nots or _LIMITING.occurs_in(" ".join(clause)) else set()
            everything |= set(stems)
        self.following.discard("")
        self.apart = everything - beside - {""}


def _clauses(text: str) -> list[str]:
    return list(_CLAUSE_END.split(_NO_NEGATION.sub(" ", text)))


_GUESSING: Final = Vocabulary(TABLES["guessing"], TABLES["guessing_parts"])
"""Words of somebody who is not sure: probably, maybe, might."""

_THINKING: Final = Vocabulary((), TABLES["thinking_parts"])
"""Words that make a view of what is said, which it stays if the sentence says whose it is: I think."""

_TELLS_OF_DOUBT: Final = Vocabulary(TABLES["telling_of_doubt"], TABLES["telling_of_doubt_parts"])
"""Words by which somebody who tells of a guess says that it is one: suspects, thinks, could, seems."""

SENTENCE_END: Final = regex.compile(r"[.!?…。！？\n]+(?!\p{Nd})")
"""Where a sentence of talk ends."""

_FIRST_WORDS: Final = 3
"""Words by which the sentence of a quote is found."""

_LONGEST_SENTENCE: Final = 40
"""Words of a sentence of talk; where there are more, its end was not written."""


def makes_certain(text: str, said: Sequence[str], *, is_told_as_a_view: bool) -> bool:
    """Return whether none of the words of a guess, as ``said``, is left in the text; all of them are plain.

    What somebody only thinks may be told as theirs, or stand where somebody else says so, too.
    """
    if _is_hedged(text):
        return False
    return any(_GUESSING.occurs_in(one) or (not is_told_as_a_view and _THINKING.occurs_in(one)) for one in said)


def makes_guess_certain(text: str, before: Sequence[str]) -> bool:
    """Return whether one of several sentences tells of a guess, and the one in their place does not."""
    return not _is_hedged(text) and any(_GUESSING.occurs_in(one) for one in before)


def _is_hedged(text: str) -> bool:
    return "?" in text or "？" in text or _GUESSING.occurs_in(text) or _TELLS_OF_DOUBT.occurs_in(text)


def sentences_around(quote: str, message: str) -> Iterator[str]:
    """Yield the quote with the rest of the sentences in which its message has it; all of them are plain."""
    words = words_of(quote)
    ends = {joined(words[:_FIRST_WORDS]), joined(words[-_FIRST_WORDS:])}
    for sentence in SENTENCE_END.split(message):
        spoken = words_of(sentence)
        if len(spoken) <= _LONGEST_SENTENCE and any(end in joined(spoken) for end in ends):
            yield sentence
    yield quote
