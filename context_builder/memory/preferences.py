"""Preferences as people state them: "I prefer short answers", "please always …", "call me Ann"."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Final

from context_builder.memory.memory import Memory
from context_builder.memory.preference_patterns import STATED, WORDS, Pattern, cleaned, is_of_others, name_in, own_words
from context_builder.memory.preference_topics import topic_of

KIND: Final = "preference"
"""The kind of memory that a preference becomes."""


@dataclass(frozen=True, slots=True)
class Preference:
    """What somebody wants, in the third person. Of one ``topic`` the newest holds."""

    topic: str
    text: str

    def as_memory(self, user_id: str, *, source: str | None = None, time: datetime | None = None) -> Memory:
        """To be remembered: stated again, it takes the place of the earlier one. ``source`` is its message's id."""
        named = sha256(f"{user_id}\n{self.topic}".encode("utf-8", "replace")).hexdigest()[:32]
        return Memory(
            id=f"{KIND}-{named}",
            text=self.text,
            kind=KIND,
            user_id=user_id,
            time=time,
            tags=(KIND, self.topic),
            metadata={"topic": self.topic, "source_message": source},
        )


def stated_preferences(text: str) -> list[Preference]:
    """What the speaker of ``text`` wants, in the order stated; of one topic the last.

    Words of others are passed over: what is quoted, and what somebody else is said to have said. So are
    conditions ("if I prefer") and questions that request nothing ("do I prefer tea?").
    """
    found: dict[str, Preference] = {}
    for sentence in own_words(text):
        for preference in _stated(sentence):
            found.pop(preference.topic, None)
            found[preference.topic] = preference
    return list(found.values())


def _stated(sentence: str) -> Iterator[Preference]:
    taken: list[tuple[int, int]] = []  # in order, and none within another
    found: list[tuple[int, Preference]] = []
    for pattern in STATED:
        for match in pattern.said.finditer(sentence):
            start, end = match.span()
            place = bisect(taken, (start, end))
            if (place and taken[place - 1][1] > start) or (place < len(taken) and taken[place][0] < end):
                continue
            taken.insert(place, (start, end))
            if (wish := _wish(pattern, match, sentence)) is not None:
                found.append((start, Preference(_topic(pattern, wish), pattern.form.format(wish))))
    return (preference for _, preference in sorted(found, key=lambda each: each[0]))


def _wish(pattern: Pattern, match: re.Match[str], sentence: str) -> str | None:
    """What is wanted, in the third person; None if it is not meant."""
    if is_of_others(sentence, match.start()) or (not pattern.is_request and sentence.endswith("?")):
        return None
    rest = match["rest"]
    if pattern.topic == "name":
        return name_in(rest, sentence)
    return cleaned(rest, pattern)


def _topic(pattern: Pattern, wish: str) -> str:
    return " ".join(wish.lower().split()) if pattern.topic == WORDS else pattern.topic or topic_of(wish)
