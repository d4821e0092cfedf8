"""Tells whether a sentence makes certain what was only guessed (``words.json``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import regex

from context_builder.analysis.evidence.words import TABLES, Vocabulary, words_of

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
    ends = {_joined(words[:_FIRST_WORDS]), _joined(words[-_FIRST_WORDS:])}
    for sentence in SENTENCE_END.split(message):
        spoken = words_of(sentence)
        if len(spoken) <= _LONGEST_SENTENCE and any(end in _joined(spoken) for end in ends):
            yield sentence
    yield quote


def _joined(words: Sequence[str]) -> str:
    return f" {' '.join(words)} "
