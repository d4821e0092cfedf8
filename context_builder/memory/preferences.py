"""Preferences as people state them: "I prefer short answers", "please always …", "call me Ann"."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Final, Self

from context_builder.analysis.analyst import PreferenceKind
from context_builder.memory.memory import Memory
from context_builder.memory.preference_patterns import (
    STATED,
    Pattern,
    cleaned,
    is_of_others,
    may_state,
    name_in,
    own_words,
)


def _by_word(topics: dict[str, str]) -> dict[str, str]:
    return {word: topic for topic, words in topics.items() for word in words.split()}


# Of what people want one kind at a time; the noun that the wish comes down to tells which.
_NOUNS: Final = _by_word(
    {
        "length": "brevity conciseness detail details verbosity one-liners",
        "form": "bullets lists prose tables markdown paragraphs diagrams",
        "tone": "formality informality politeness directness",
        "units": "metric imperial celsius fahrenheit kilometers kilometres miles kilograms pounds",
        "language": "arabic chinese czech danish dutch english finnish french german greek hebrew hindi hungarian"
        " italian japanese korean norwegian polish portuguese romanian russian spanish swedish turkish ukrainian",
        "drink": "tea coffee espresso cappuccino water juice milk lemonade cola beer wine cider cocoa matcha",
        "pets": "cat cats dog dogs",
        "seat": "aisle window",
        "travel": "train trains plane planes flying bus buses car cars driving bike bikes cycling walking",
        "contact": "email emails e-mail e-mails phone text texts texting call calls chat video letters",
        "day": "mondays tuesdays wednesdays thursdays fridays saturdays sundays weekdays weekends"
        " monday tuesday wednesday thursday friday saturday sunday",
        "hour": "morning mornings afternoon afternoons evening evenings night nights",
        "payment": "cash card cards invoice",
    }
)
_ADJECTIVES: Final = _by_word(
    {
        "length": "short shorter brief briefer concise succinct terse long longer detailed verbose thorough in-depth",
        "form": "bullet bulleted numbered",
        "tone": "formal informal casual friendly polite direct blunt professional",
    }
)
# Nouns beside which the adjective tells: short answers, a window seat, afternoon meetings, metric units.
_BEARERS: Final = frozenset(
    "answer answers reply replies response responses explanation explanations summary summaries message messages"
    " style tone language unit units points list lists seat seats meeting meetings appointment appointments".split()
)
_OVER: Final = re.compile(r"\s+(?:over|rather than|instead of|more than|(?<!^to )to)\s+")
_OCCASION: Final = re.compile(
    r"\s+(?:in|on|at|for|with|without|when|while|during|after|before|by|from|of|if|as)\s+(.*)"
)
_LEAD: Final = re.compile(
    r"(?:(?:to|it|if|when|that|you|your|the|a|an|my|some|things|getting|get|having|have|drinking|drink|using|use|speaking|speak"
    r"|talking|talk|writing|write|answering|answer|replying|reply|keep|kept|in|by|would|always)\s+)+"
)


def topic_of(wish: str) -> str:
    """Return the kind of thing that is preferred (``drink``, ``length``), else the preference's own words.

    Tea and coffee are both drinks. A wish for an occasion ("tea in the morning") is another than the wish without it.
    Of "vim over emacs" and "emacs over vim" the later holds, as both choose between the same.
    """
    words = " ".join(wish.lower().split())
    alternatives = [part for part in _OVER.split(words, maxsplit=1) if part]
    known = next(filter(None, map(_kind, alternatives)), None)
    return known or " or ".join(sorted(alternatives))


def chosen(wish: str) -> str:
    """Return the preferred one of several things: "tea" of "tea over coffee"."""
    return next((part for part in _OVER.split(wish, maxsplit=1) if part), "")


def _kind(preference: str) -> str | None:
    lead = _LEAD.match(preference)
    what, *occasion = _OCCASION.split(" " + preference[lead.end() if lead else 0 :], maxsplit=1)
    words = what.split()
    if not 0 < len(words) <= 3:
        return None
    if words[-1] in _BEARERS or all(word in _ADJECTIVES for word in words):
        return next(
            filter(None, (_ADJECTIVES.get(word) or _NOUNS.get(word) for word in [*words, *_last(occasion)])), None
        )
    topic = _NOUNS.get(words[-1])
    return f"{topic}, {occasion[0]}" if topic and occasion and occasion[0] else topic


def _last(occasion: list[str]) -> list[str]:
    """Return the noun of "answers in German"."""
    return occasion[0].split()[-1:] if occasion else []


KIND: Final = "preference"
"""The kind of memory that a preference becomes."""


MOST: Final = 20
"""Preferences of one message; nobody states more in earnest."""

WITHDRAWN: Final = "withdrawn"
"""Name in a memory's metadata of the preference that it takes back."""

_TOPICS: Final = {PreferenceKind.NAME: "name", PreferenceKind.LANGUAGE: "language"}
_BY_TOPIC: Final = frozenset({PreferenceKind.PREFERS, PreferenceKind.ALWAYS})
"""Kinds of which something else may be wished for instead: tea or coffee, but nothing or silence."""

_WORD: Final = re.compile(r"[^\W_]+")
_EMPTY_WORDS: Final = frozenset("it when to be in the a an their of and or called replies".split())


@dataclass(frozen=True, slots=True)
class Preference:
    """A preference in the third person; a ``withdrawn`` one no longer holds. Of one ``topic`` the newest holds."""

    topic: str
    text: str
    withdrawn: bool = False

    @classmethod
    def of(cls, kind: PreferenceKind, what: str, *, withdrawn: bool = False) -> Self:
        """Return the preference of this kind for ``what``."""
        words = " ".join(what.lower().split())
        topic = _TOPICS.get(kind) or (topic_of(what) if kind in _BY_TOPIC else words)
        return cls(topic, kind.phrase(what), withdrawn)

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the preference that ``text`` tells as :meth:`PreferenceKind.phrase` does, or in other words."""
        kinds = {kind.phrase(""): kind for kind in PreferenceKind}
        if (prefix := max(filter(text.startswith, kinds), key=len, default=None)) is None:
            return cls(" ".join(text.lower().split()), text)
        return cls.of(kinds[prefix], text[len(prefix) :])

    def withdraws(self, text: str) -> bool:
        """Return whether it takes back ``text``: "no longer tea" takes back green tea, and not coffee."""
        (verb, what), (held, wanted) = _parts(self.text), _parts(text)
        return self.withdrawn and verb == held and bool(what) and what <= wanted

    def as_memory(self, user_id: str, *, source: str | None = None, time: datetime | None = None) -> Memory:
        """Return the preference as a memory, which replaces an earlier one. ``source`` is its message's id."""
        named = sha256(f"{user_id}\n{self.topic}".encode("utf-8", "replace")).hexdigest()[:32]
        memory = Memory(
            id=f"{KIND}-{named}",
            text=self.text,
            kind=KIND,
            user_id=user_id,
            time=time,
            tags=(KIND, self.topic),
            metadata={"topic": self.topic, "source_message": source},
        )
        return withdrawal(memory, source, time) if self.withdrawn else memory


def withdrawal(memory: Memory, source: str | None, time: datetime | None) -> Memory:
    """Return the memory that replaces a preference that the message ``source`` takes back."""
    return replace(
        memory,
        text=f"No longer {memory.text[:1].lower()}{memory.text[1:]}",
        time=time,
        metadata={**memory.metadata, "source_message": source, WITHDRAWN: memory.text},
    )


def stated_preferences(text: str) -> list[Preference]:
    """Return what the speaker of ``text`` prefers, or no longer prefers, in order; of one topic the last.

    Words of others are passed over: what is quoted, and what somebody else is said to have said. So are
    conditions ("if I prefer") and questions that request nothing ("do I prefer tea?").
    """
    if not may_state(text):
        return []
    found: dict[tuple[str, bool], Preference] = {}
    for sentence in own_words(text):
        for preference in _stated(sentence):
            for key in [key for key, one in found.items() if not one.withdrawn and preference.withdraws(one.text)]:
                del found[key]
            found.pop((preference.topic, preference.withdrawn), None)
            found[preference.topic, preference.withdrawn] = preference
    return list(found.values())[-MOST:]


def _stated(sentence: str) -> Iterator[Preference]:
    taken: list[tuple[int, int]] = []  # in order, and none within another
    found: list[tuple[int, Preference]] = []
    for pattern in STATED:
        for match in pattern.pattern.finditer(sentence):
            start, end = match.span()
            place = bisect(taken, (start, end))
            if (place and taken[place - 1][1] > start) or (place < len(taken) and taken[place][0] < end):
                continue
            taken.insert(place, (start, end))
            if (wish := _wish(pattern, match, sentence)) is not None:
                found.append((start, Preference.of(pattern.kind, wish, withdrawn=pattern.withdraws)))
    return (preference for _, preference in sorted(found, key=lambda each: each[0]))


def _wish(pattern: Pattern, match: re.Match[str], sentence: str) -> str | None:
    """Return the preference in the third person; None if none is meant."""
    if is_of_others(sentence, match.start()) or (not pattern.is_request and sentence.endswith("?")):
        return None
    rest = match["rest"]
    if pattern.kind is PreferenceKind.NAME:
        return name_in(rest, sentence)
    return cleaned(rest, pattern)


def _parts(text: str) -> tuple[str, set[str]]:
    """Return how a preference is told, and the words that tell what it is for, in the singular; without "over tea"."""
    verb, _, what = text.casefold().partition(" ")
    words = set(_WORD.findall(chosen(what))) - _EMPTY_WORDS
    return "prefers" if verb == "likes" else verb, {word.removesuffix("s") or word for word in words}
