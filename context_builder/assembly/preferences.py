"""Preferences as people state them: "I prefer short answers", "please always …", "call me Ann"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Final

from context_builder.assembly.strategies.user_preferences import KIND
from context_builder.memory.memory import Memory

_REST: Final = r"(?P<rest>[^.!?;\n]{2,160})"
_LANGUAGE: Final = (
    r"(?P<rest>(?:simple |plain )?(?:arabic|chinese|czech|danish|dutch|english|finnish|french|german|greek|hebrew|hindi"
    r"|italian|japanese|korean|norwegian|polish|portuguese|russian|spanish|swedish|turkish|ukrainian))\b"
)
_STATED: Final = tuple(
    (re.compile(rf"(?<!\w){said}\s+{rest}", re.IGNORECASE), form)
    for said, rest, form in (
        (r"I(?:'d| would)? (?:really |strongly |generally |usually |always )?prefer", _REST, "Prefers {}"),
        (r"my preference is", _REST, "Prefers {}"),
        (r"I (?:really )?(?:like|love) it when", _REST, "Likes it when {}"),
        (r"I (?:really )?(?:hate|can't stand|don't like|do not like|dislike)", _REST, "Dislikes {}"),
        (r"please always", _REST, "Always {}"),
        (r"(?:please never|never ever)", _REST, "Never {}"),
        (r"(?:please )?(?:just )?call me", r"(?P<rest>[^.,!?;\n]{2,60})", "Wants to be called {}"),
        (r"(?:answer|reply|respond|write|speak)(?: to me)? in", _LANGUAGE, "Wants replies in {}"),
    )
)
_CALL_BACK: Final = re.compile(
    r"^(?:back|later|tomorrow|when|if|at|on|in|after|before|once|again|up|now)\b", re.IGNORECASE
)
_TOPICS: Final = (
    ("name", re.compile(r"^Wants to be called")),
    (
        "language",
        re.compile(r"^Wants replies in|\b(?:english|german|french|spanish|italian|language)\b", re.IGNORECASE),
    ),
    ("length", re.compile(r"\b(?:short|brief|concise|long|detailed|verbose)(?:er)?\b", re.IGNORECASE)),
    ("units", re.compile(r"\b(?:metric|imperial|celsius|fahrenheit|kilomet\w+|miles)\b", re.IGNORECASE)),
    ("form", re.compile(r"\b(?:bullets?|bullet points|lists?|tables?|prose|examples?|code)\b", re.IGNORECASE)),
)


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


def stated_preferences(text: str) -> Iterator[Preference]:
    """The preferences that ``text`` states, in order."""
    for pattern, form in _STATED:
        for match in pattern.finditer(text):
            rest = " ".join(match["rest"].split()).rstrip(" ,")
            if form.startswith("Wants to be called") and (_CALL_BACK.match(rest) or len(rest.split()) > 4):
                continue
            yield Preference(_topic(stated := form.format(rest)), stated)


def _topic(stated: str) -> str:
    """What a preference is about: a topic that is known, else its own words."""
    known = (topic for topic, pattern in _TOPICS if pattern.search(stated))
    return next(known, " ".join(stated.lower().split()))
