"""The kind of a query, told by its words, plans the context: weights, and the section kept first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from context_builder.assembly.candidate import ContextType


class QueryKind(StrEnum):
    """Tells what is asked for: an overview, a preference, something recent, or anything else."""

    SUMMARY = "summary"
    PREFERENCE = "preference"
    RECENT = "recent"
    FACT = "fact"


@dataclass(frozen=True, slots=True)
class Plan:
    """Tells how much similarity and recency count, and which section of a turn's prompt is filled first."""

    similarity_weight: float
    recency_weight: float
    order: tuple[ContextType, ...]


_MEMORY, _SUMMARY, _HISTORY, _PREFERENCES = (
    ContextType.SEMANTIC,
    ContextType.SUMMARY,
    ContextType.RECENT,
    ContextType.USER_PREFERENCES,
)

ORDER: Final = (_MEMORY, _SUMMARY, _PREFERENCES, _HISTORY)
"""Which section of a turn's prompt is kept first, after the system prompt and the user's message."""

PLANS: Final = {
    QueryKind.SUMMARY: Plan(0.7, 0.3, (_SUMMARY, _MEMORY, _PREFERENCES, _HISTORY)),
    QueryKind.PREFERENCE: Plan(0.9, 0.1, (_PREFERENCES, _MEMORY, _SUMMARY, _HISTORY)),
    QueryKind.RECENT: Plan(0.4, 0.6, (_HISTORY, _MEMORY, _SUMMARY, _PREFERENCES)),
    QueryKind.FACT: Plan(0.85, 0.15, ORDER),
}

_SIGNS: Final = tuple(
    (kind, re.compile(rf"\b(?:{words})\b", re.IGNORECASE))
    for kind, words in (
        (
            QueryKind.SUMMARY,
            r"summar(?:y|i[sz]e|i[sz]ing)|recap|overview|gist|tl;?dr|so far|(?:main|key) points?|catch me up|in short"
            r"|what (?:have|did|do|are) we (?:\w+ )?(?:discuss|decide|talk|cover|agree|conclude)\w*",
        ),
        (
            QueryKind.PREFERENCE,
            r"prefer(?:s|red|ences?)?|favou?rites?|(?:like|love|hate|dislike|want)s? (?:best|most|least|to be called)"
            r"|(?:do|does|did) (?:I|you|he|she|they|we|\w+) (?:like|love|hate|dislike|enjoy)|allergic",
        ),
        (
            QueryKind.RECENT,
            r"just (?:now|said|say|mentioned|asked)|last (?:thing|message|question|point|word)|latest|recent(?:ly)?"
            r"|newest|(?:moment|minutes?|seconds?) ago|right now|at the moment|currently|earlier today|who spoke",
        ),
    )
)


def kind_of(query: str) -> QueryKind:
    """Return the first kind whose signs the query has, else a fact. Knows English only."""
    return next((kind for kind, signs in _SIGNS if signs.search(query)), QueryKind.FACT)
