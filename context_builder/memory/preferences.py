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
from context_builder.memory.preference_topics import chosen, topic_of

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
    """Holds a preference in the third person; ``withdrawn``, it no longer holds. Of one ``topic`` the newest holds."""

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
