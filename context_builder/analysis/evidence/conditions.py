"""The check whether a sentence says without its condition what was said under one, or of everything what held of one
thing only (``words.json``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Final

import regex

from context_builder.analysis.evidence.negation import negates
from context_builder.analysis.evidence.overlap import Terms
from context_builder.analysis.evidence.words import TABLES, CheckedText, Vocabulary, plain, words_of
from context_builder.language import language_of


def _marker(words: Collection[str], parts: Collection[str] = ()) -> regex.Pattern[str]:
    """Return a pattern that finds one of the words, or of the parts where scripts part no words, in a plain text."""
    whole = "|".join(regex.escape(plain(word)) for word in words)
    within = "".join(f"|{regex.escape(plain(part))}" for part in parts)
    return regex.compile(rf"(?<!\p{{L}})(?:{whole})(?!\p{{L}}){within}")


_CONDITION: Final = _marker(TABLES["conditions"], TABLES["condition_parts"])
"""Where begins what makes a rule hold, or ends it: if, unless, until, without."""

_CONDITIONS_OF: Final = {
    language: _marker([*TABLES["conditions"], *words], TABLES["condition_parts"])
    for language, words in TABLES["conditions_of"].items()
}
"""The same in languages with words for it that say something else in others: Spanish ``si`` is an Italian pronoun."""

_NO_CONDITION: Final = _marker(TABLES["not_conditions"])

_ONLY: Final = _marker([*TABLES["only"], *TABLES["one_of_several"]])
"""Words before what a rule is limited to."""

_LIMITED: Final = Vocabulary(
    [*TABLES["only"], *(each.split()[-1] for each in TABLES["one_of_several"]), *TABLES["alone"], *TABLES["limits"]],
    [*TABLES["only_parts"], *TABLES["limit_parts"]],
)

_STILL_SAID: Final = 0.6
"""Part of a rule without its condition, by what its words tell, from which a sentence says it."""

_HARDLY_SAID: Final = 0.34
"""Part of a condition below which a sentence does not say it."""

_ALL_SAID: Final = 0.95
"""Part of a few words that is all of them, perhaps in another form."""

_LIMITED_WORDS: Final = 3
"""Words after "only" by which is found what it limits."""

_MOST_RULES: Final = 20
"""Conditions and limits of a text that are looked at; a sentence of a summary has one or two."""

_PART_END: Final = regex.compile(r"[;:.!?…؛؟。；：！？](?!\d)")
"""Where a part of a sentence ends that says something with its conditions."""

_CLAUSE_END: Final = regex.compile(r"[,;:.!?…،؛؟、，。；：！？](?!\d)")


def loses_a_condition(text: str, before: Sequence[str]) -> bool:
    """Return whether a sentence says what one of the texts ``before`` does, but not its condition or its "only".

    All of them are plain.
    """
    said = Terms([CheckedText(text)])
    language = language_of(" ".join([text, *before]))
    if any(
        _share(said, rule) >= _STILL_SAID and _share(said, condition, if_nothing=1.0) < _HARDLY_SAID
        for one in before
        for rule, condition in islice(_rules_of(one, language_of(one) or language), _MOST_RULES)
    ):
        return True
    clauses = _CLAUSE_END.split(text)
    return any(
        _is_not_limited_in(clauses, words) for one in before for words in islice(_limited_words_of(one), _MOST_RULES)
    )


def _rules_of(text: str, language: str | None) -> Iterator[tuple[str, str]]:
    """Yield what a plain text says under each condition, and the condition."""
    condition_begins = _CONDITION if language is None else _CONDITIONS_OF.get(language, _CONDITION)
    for part in _PART_END.split(_NO_CONDITION.sub(" ", text)):
        for marker in condition_begins.finditer(part):
            condition = _CLAUSE_END.split(part[marker.end() :], maxsplit=1)[0]
            yield f"{part[: marker.start()]} {part[marker.end() + len(condition) :]}", condition


def _limited_words_of(text: str) -> Iterator[str]:
    """Yield the first words after each "only" of a plain text."""
    for marker in _ONLY.finditer(text):
        clause = _CLAUSE_END.split(text[marker.end() :], maxsplit=1)[0]
        yield " ".join(words_of(clause)[:_LIMITED_WORDS])


def _is_not_limited_in(clauses: Sequence[str], words: str) -> bool:
    """Return whether clauses have the words, and none of these has a limit or a negation."""
    having = [clause for clause in clauses if _share(Terms([CheckedText(clause)]), words) >= _ALL_SAID]
    return bool(having) and not any(_LIMITED.occurs_in(clause) or negates(clause) for clause in having)


def _share(said: Terms, text: str, *, if_nothing: float = 0.0) -> float:
    """Return the part of what the words of ``text`` tell that was said; ``if_nothing`` where they tell nothing."""
    share = said.share_of(text)
    return if_nothing if share is None else share
