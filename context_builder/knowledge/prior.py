"""A prior tells how likely a passage answers anything, before it is compared with an intent.

What a project was (its changes) and how it is run (contributing, licences) mention everything and explain little, and a
passage of a few words is like any intent by its embedding. Both would take the place of answers.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from context_builder.knowledge.passages import words_in
from context_builder.memory.memory import Memory

RECORD: Final = 0.5
"""Of a document that records a project's changes or how it is run, unless the intent is about these."""

BRIEF: Final = 0.4
"""Of a passage without words; it grows to 1 at :data:`ENOUGH` words. What opens a document may be all of it."""

ENOUGH: Final = 25

_RECORDS: Final = re.compile(
    r"(?:the )?(?:change ?logs?|changes|history|news|release ?notes|releases|what ?s ?new|contributing|contributors"
    r"|authors|maintainers|code of conduct|governance|licen[sc]e|security(?: policy)?)(?: [\d ]+)?",
    re.IGNORECASE,
)
_ASKED: Final = re.compile(
    r"\b(?:chang|version|releas|upgrad|migrat|deprecat|remov|contribut|pull request|licen[sc]|histor|conduct"
    r"|maintain|vulnerab|securit|\d+\.\d)",
    re.IGNORECASE,
)
_BETWEEN: Final = re.compile(r"[-_.'’\s]+")


def prior(passage: Memory, intent: str) -> float:
    """Return the prior (0..1) of a document's passage for an intent."""
    title = (passage.speaker or "").split(" › ", 1)[0]
    is_record = _is_record(str(passage.metadata["ref"]), title) and _ASKED.search(intent) is None
    return (RECORD if is_record else 1.0) * (_brevity(passage.text) if passage.position else 1.0)


@lru_cache(4_096)
def _is_record(ref: str, title: str) -> bool:
    """Return whether a document's file or title is named as one that records changes, or how a project is run."""
    file = ref.rsplit("/", 1)[-1].rpartition(":")[2]
    names = (file.rpartition(".")[0] or file, title)
    return any(_RECORDS.fullmatch(_BETWEEN.sub(" ", name).strip()) is not None for name in names)


def _brevity(text: str) -> float:
    return min(1.0, BRIEF + (1 - BRIEF) * words_in(text) / ENOUGH)
