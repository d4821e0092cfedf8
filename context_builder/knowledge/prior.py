"""A prior tells how likely a passage answers anything, before it is compared with an intent.

What a project was (its changes) and how it is run (contributing, licences) mention everything and explain little, and a
passage of a few words is like any intent by its embedding. Both would take the place of answers.

A search by words takes a name such as ``filter_by_level`` apart, and finds whatever is about levels. Where an intent
has such names, passages that have them as they stand come before those that have not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final

from context_builder.knowledge.passages import CODE, words_in
from context_builder.memory.memory import Memory

RECORD: Final = 0.5
"""Of a document that records a project's changes or how it is run, unless the intent is about these."""

BRIEF: Final = 0.4
"""Of a passage without words; it grows to 1 at :data:`ENOUGH` words. What opens a document may be all of it."""

ENOUGH: Final = 25

_RECORDS: Final = re.compile(
    r"(?:the )?(?:change ?logs?|changes|history|news|release ?notes|releases|what ?s ?new|contributing|contributors"
    r"|authors|maintainers|code of conduct|governance|licen[sc]e|security policy)(?: [\d ]+)?",
    re.IGNORECASE,
)
_ASKED: Final = re.compile(
    r"\b(?:chang(?:ed|es|e ?log)\b|version|releas|upgrad|migrat|deprecat|removed|contribut|pull request|licen[sc]"
    r"|histor|conduct|maintain|vulnerab|securit|\d+\.\d)",
    re.IGNORECASE,
)
_POLICY: Final = "SECURITY"
"""File of a project's security policy, as Git hosts look for it; one of small letters is about the subject."""

_BETWEEN: Final = re.compile(r"[-_.'’\s]+")


def prior(passage: Memory, intent: str) -> float:
    """Return the prior (0..1) of a document's passage for an intent."""
    title = (passage.speaker or "").split(" › ", 1)[0]
    is_document = passage.kind != CODE
    is_record = is_document and _is_record(str(passage.metadata["ref"]), title) and _ASKED.search(intent) is None
    return (RECORD if is_record else 1.0) * (_brevity(passage.text) if passage.position else 1.0)


@lru_cache(4_096)
def _is_record(ref: str, title: str) -> bool:
    """Return whether a document's file, folder or title is named as one that records changes, or how a project is
    run."""
    *folders, file = ref.rpartition(":")[2].split("/")
    stem = file.rpartition(".")[0] or file
    names = (stem, title, *folders[1:])  # the first is the project
    return stem == _POLICY or any(_RECORDS.fullmatch(_BETWEEN.sub(" ", name).strip()) is not None for name in names)


def _brevity(text: str) -> float:
    return min(1.0, BRIEF + (1 - BRIEF) * words_in(text) / ENOUGH)


UNNAMED: Final = 0.75
"""Of a passage without any of the names that the intent has, where others have them."""

NAMES: Final = 32
"""Names of an intent that are looked for."""

_WORD: Final = re.compile(r"\w+(?:\.\w+)*")


def naming(intent: str, texts: Sequence[str]) -> list[float]:
    """Return a factor (0..1) for each text: 1 for those that have most of the names in the intent, less the fewer of
    these they have."""
    named = (word.casefold() for word in _WORD.findall(intent) if _is_name(word))
    names = list(islice(dict.fromkeys(named), NAMES))
    folded = [text.casefold() for text in texts] if names else []
    have = [sum(name in text for name in names) for text in folded]
    most = max(have, default=0)
    return [UNNAMED + (1 - UNNAMED) * one / most for one in have] if most else [1.0] * len(texts)


def _is_name(word: str) -> bool:
    """Return whether a word is written as names in programs are: with underscores, dots between more than initials, or
    capitals after small letters."""
    parts = [part for part in re.split(r"[._]", word) if part]
    is_joined = len(parts) > 1 and all(len(part) > 1 for part in parts)
    is_marked = word[0] == "_" or any(one.islower() and other.isupper() for one, other in pairwise(word))
    return bool(parts) and not word[0].isdigit() and (is_joined or is_marked)
