"""Keywords of one message: the phrases that name what it is about.

A phrase is a run of words that no function word, verb or punctuation interrupts, trimmed of
general words at its ends (Rose et al. 2010, RAKE, for the runs). It is scored by how specific
its words are, how often they recur here and in the session, and how early they come.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Final, NamedTuple

from context_builder.analysis.analyst import MAX_KEYWORDS, MIN_KEYWORD_TEXT
from context_builder.analysis.text.sentences import fluent
from context_builder.analysis.text.vocabulary import DATES, GENERAL_WORDS, MODALS, SUBJECTS, VAGUE_WORDS, VERBS
from context_builder.analysis.text.words import LONGEST_WORD, Word, words

ENOUGH: Final = 5
"""With fewer phrases than this, other words with content may help out: first general ones that stand as a noun ("their
support"), then verbs that are no general ones ("urchins graze the reef") and dates."""

LONGEST_PHRASE: Final = 5
"""Words in a phrase; a longer run is a list or a title and keeps its last words, where the head is."""

MAX_CHARACTERS: Final = 30_000
"""Most characters of a message that are read; what matters is named by then."""

SHORT: Final = 1_000
"""Most characters of a text whose reading is remembered."""

REMEMBERED: Final = 10_000
"""Texts whose readings are remembered, about 10 MB: a message is read for its keywords, and twice for domains."""

_POSSESSIVE: Final = re.compile(r"['’]s?$")
_BEFORE_NOUNS: Final = frozenset(
    "the a an this that these those my our your their his her its of with for and some more".split()
)
_BEFORE_NOUNS_ONLY: Final = _BEFORE_NOUNS - frozenset("and that this some more".split())
_DETERMINERS: Final = frozenset(
    "the a an this these their its our my your his her each and in on with by whether how it them".split()
)
_OBJECTS: Final = frozenset("the a an this these those its our my your their his her what which us them".split())
"""Words that begin an object."""


class Phrase(NamedTuple):
    """A candidate as it was first spelled, with the stems that identify it and its position in words."""

    text: str
    stems: tuple[str, ...]
    at: int
    weight: float
    """Sum of the specificity of its words."""


class TextReading(NamedTuple):
    """What is told by a text alone: its words, its candidate phrases, and the stems of its words with content, each as
    often as it occurs.
    """

    tokens: Sequence[Word]
    phrases: Sequence[Phrase]
    stems: Sequence[str]


def keywords(text: str, recurring: Mapping[str, int] | None = None, *, most: int = MAX_KEYWORDS) -> tuple[str, ...]:
    """Return up to ``most`` keywords of ``text``, best first, spelled as in it.

    ``recurring`` tells in how many messages of the session, this one included, each stem has
    occurred (:class:`~context_builder.analysis.text.words.Recurrence` counts it); terms
    that recur are preferred.
    """
    if len(text.strip()) < MIN_KEYWORD_TEXT:
        return ()
    tokens, found, stems = read(text)
    counts, length = Counter(stems), len(tokens)
    recurring = recurring or {}
    best = ranked(_placed(found), counts, length, recurring, most)
    for helpers in (nouns_by_place, verbs_by_place, dates):
        if len(best) < ENOUGH:
            helped = ranked(_placed(helpers(tokens)), counts, length, recurring, ENOUGH)
            best = _folded([*best, *helped], min(ENOUGH, most))
    return tuple(phrase.text for phrase, _ in best)


def topic_keywords(texts: Sequence[str], speakers: Iterable[str] = (), *, most: int = MAX_KEYWORDS) -> tuple[str, ...]:
    """Return up to ``most`` keywords of a stretch of talk, given oldest first; newer ones are preferred.

    The names of the ``speakers`` are no topic.
    """
    names = {word.stem for speaker in speakers for word in words(speaker)}
    candidates: list[tuple[Phrase, int]] = []
    counts: Counter[str] = Counter()
    length = 0
    for text in reversed(texts):
        tokens, found, stems = read(text)
        candidates += [(phrase, length + phrase.at) for phrase in found if not names.issuperset(phrase.stems)]
        counts.update(stems)
        length += len(tokens)
    return tuple(phrase.text for phrase, _ in ranked(candidates, counts, length, {}, most))


def read(text: str) -> TextReading:
    """Return what ``text`` says by itself."""
    return _remembered(text) if len(text) <= SHORT else _read(text)


def _read(text: str) -> TextReading:
    tokens = words(fluent(text[:MAX_CHARACTERS]))
    return TextReading(tokens, tuple(phrases(tokens)), [word.stem for word in tokens if word.is_content])


_remembered = lru_cache(REMEMBERED)(_read)


def phrases(tokens: Sequence[Word]) -> Iterator[Phrase]:
    """Yield every candidate phrase of a text, repeated as often as it occurs."""
    run: list[int] = []
    for index, word in enumerate(tokens):
        ends = _ends_phrase(tokens, index)
        if run and (ends or not word.joined):
            yield from _trimmed(tokens, run)
            run = []
        if not ends:
            run.append(index)
    yield from _trimmed(tokens, run)


def _ends_phrase(tokens: Sequence[Word], index: int) -> bool:
    word = tokens[index]
    if not word.is_content or len(word.text) > LONGEST_WORD:
        return True
    if word.is_identifier:
        return False
    return word.lower in VERBS or _is_verb_here(tokens, index)


def _is_verb_here(tokens: Sequence[Word], index: int) -> bool:
    """Return whether what stands around a word makes it a verb, as in "we model the" or "to model the"."""
    word = tokens[index]
    if word.text[0].isupper():
        return False
    before = tokens[index - 1].lower if index and word.joined else ""
    if before == "to":
        after = tokens[index + 1].lower if index + 1 < len(tokens) else ""
        return after in _DETERMINERS
    if before in SUBJECTS or (before in MODALS and not _begins_question(tokens, index - 1)):
        return not word.lower.endswith("ing")
    return _is_verb_after_noun(tokens, index)


def _is_verb_after_noun(tokens: Sequence[Word], index: int) -> bool:
    """Return whether a word between one with content and another is a verb, by its form and what comes then.

    It has an object ("graze the reef"), or ends in -ed with nothing to qualify ("burned in"), or in -s before a noun,
    because a noun before a noun is hardly ever a plural.
    """
    if not 0 < index < len(tokens) - 1 or not tokens[index - 1].is_content:
        return False
    word, after = tokens[index], tokens[index + 1]
    if not word.joined or not after.joined:
        return False
    if _has_object(tokens, index) or (word.lower.endswith("ed") and not after.is_content):
        return True
    ends_in_s = word.lower.endswith("s") and not word.lower.endswith(("ss", "us", "is", "ics", "'s"))
    return ends_in_s and after.is_content and not _has_object(tokens, index + 1)


def _has_object(tokens: Sequence[Word], index: int) -> bool:
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    return after is not None and after.joined and after.lower in _OBJECTS


def _begins_question(tokens: Sequence[Word], modal: int) -> bool:
    """Return whether a modal stands before its subject, as in "How can robots ..."."""
    if modal == 0 or not tokens[modal].joined:
        return True
    before = tokens[modal - 1]
    return not before.is_content and before.lower not in SUBJECTS


def _trimmed(tokens: Sequence[Word], run: Sequence[int]) -> Iterator[Phrase]:
    inside = list(run)
    while inside and _is_weak_end(tokens[inside[-1]]) and not _is_head(tokens, inside):
        inside.pop()
    while inside and _is_weak_start(tokens[inside[0]]):
        inside.pop(0)
    inside = inside[-LONGEST_PHRASE:]
    if not inside or (len(inside) == 1 and len(tokens[inside[0]].text) == 1):
        return
    yield _phrase([tokens[index] for index in inside], inside[0])


def _phrase(chosen: Sequence[Word], at: int) -> Phrase:
    text = _POSSESSIVE.sub("", " ".join(word.text for word in chosen))
    return Phrase(text, tuple([word.stem for word in chosen]), at, sum([word.specificity for word in chosen]))


def nouns_by_place(tokens: Sequence[Word]) -> Iterator[Phrase]:
    """Yield general words and verbs that an article, possessive or preposition shows to be nouns here."""
    for index, word in enumerate(tokens[1:], start=1):
        if (
            word.joined
            and word.is_content
            and tokens[index - 1].lower in (_BEFORE_NOUNS_ONLY if word.lower in VERBS else _BEFORE_NOUNS)
            and (word.lower in VERBS or word.lower in GENERAL_WORDS)
            and word.lower not in VAGUE_WORDS
            and not word.lower.endswith(("ing", "ed", "ly"))
            and _closes(tokens, index)
        ):
            yield _phrase([word], index)


def verbs_by_place(tokens: Sequence[Word]) -> Iterator[Phrase]:
    """Yield the words that their place makes verbs, other than general ones."""
    for index, word in enumerate(tokens):
        if word.is_content and not _is_weak(word) and _is_verb_here(tokens, index):
            yield _phrase([word], index)


def dates(tokens: Sequence[Word]) -> Iterator[Phrase]:
    """Return the positions of the names of months and of days of the week."""
    for index, word in enumerate(tokens):
        if word.text[0].isupper() and word.lower in DATES:
            yield _phrase([word], index)


def _is_weak(word: Word) -> bool:
    return _is_weak_end(word) or word.is_identifier or word.lower in VERBS or len(word.text) > LONGEST_WORD


def _closes(tokens: Sequence[Word], index: int) -> bool:
    """Return whether nothing with content follows directly, so that the word is no adjective."""
    if index + 1 == len(tokens):
        return True
    after = tokens[index + 1]
    return not after.joined or not after.is_content


def _is_weak_start(word: Word) -> bool:
    return not word.is_identifier and (word.lower in GENERAL_WORDS or word.is_number)


def _is_head(tokens: Sequence[Word], inside: Sequence[int]) -> bool:
    """Return whether a general word ends a term of two words that would be another without it, as in "error rate"."""
    if len(inside) != 2:
        return False
    first, last = (tokens[index] for index in inside)
    general = last.lower in GENERAL_WORDS and last.lower not in VAGUE_WORDS and not last.lower.endswith("ly")
    return general and not _is_weak_start(first) and not _is_weak_end(first)


def _is_weak_end(word: Word) -> bool:
    if word.is_identifier:
        return word.is_number
    return word.lower in GENERAL_WORDS or word.lower.endswith("ly") or word.is_number


def _placed(candidates: Iterable[Phrase]) -> list[tuple[Phrase, int]]:
    return [(phrase, phrase.at) for phrase in candidates]


def ranked(
    candidates: Iterable[tuple[Phrase, int]], counts: Counter[str], length: int, recurring: Mapping[str, int], most: int
) -> list[tuple[Phrase, float]]:
    """Return the best phrases with their scores, without those that repeat or are part of a better one.

    A candidate comes with its position in words. ``counts`` tells how often each stem occurs in the text, of ``length``
    words.
    """
    first: dict[tuple[str, ...], tuple[Phrase, int]] = {}
    again: Counter[tuple[str, ...]] = Counter()
    for candidate in candidates:
        stems = candidate[0].stems
        if stems in first:
            again[stems] += 1
        else:
            first[stems] = candidate
    scored = [
        (-_score(phrase, at, 1 + again[stems], counts, recurring, length), at, phrase)
        for stems, (phrase, at) in first.items()
    ]
    scored.sort(key=_score_and_place)
    return _folded(((phrase, -score) for score, _, phrase in scored), most)


_score_and_place = itemgetter(0, 1)


def _score(
    phrase: Phrase, at: int, occurrences: int, counts: Counter[str], recurring: Mapping[str, int], length: int
) -> float:
    centrality = 0.0
    for found in phrase.stems:
        centrality += math.log1p(counts[found])
    score = centrality / len(phrase.stems)
    if recurring:
        familiar = 0.0
        for found in phrase.stems:
            familiar += math.log(max(1, recurring.get(found, 0)))
        score += 0.3 * (familiar / len(phrase.stems))
    position = 1 - 0.5 * at / (length + 1)
    score *= phrase.weight * position
    return score if occurrences == 1 else score * (1 + math.log(occurrences))


def _folded(scored: Iterable[tuple[Phrase, float]], most: int) -> list[tuple[Phrase, float]]:
    chosen: list[tuple[Phrase, float]] = []
    stems: set[str] = set()
    for phrase, score in scored:
        if not stems.isdisjoint(phrase.stems) and any(
            _within(phrase.stems, other.stems) or _within(other.stems, phrase.stems) for other, _ in chosen
        ):
            continue
        chosen.append((phrase, score))
        stems.update(phrase.stems)
        if len(chosen) == most:
            break
    return chosen


def _within(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    size = len(part)
    return any(whole[at : at + size] == part for at in range(len(whole) - size + 1))
