"""Records of labelled fields: a line each for who speaks, what is said and when, and a rule or an empty line between.

``Name: Ida``, ``Text: …``, ``Time: 09:02:03``, ``----``. Fields are called as in lists of turns (:mod:`turns`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from context_builder.transcript.formats.turns import is_list, read_turns, turn_of, who_of
from context_builder.transcript.formats.turns import text_of as said_in
from context_builder.transcript.offsets import since_first
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript

_FIELD: Final = re.compile(
    r"\s*(?:[-*]\s+)?[*_]{0,2}(?P<key>[A-Za-z][A-Za-z_ ]{0,24}?)[*_]{0,2}\s?:[*_]{0,2}\s*(?P<value>.*)"
)
_RULE: Final = re.compile(r"\s*([-=*_~#])\1{2,}\s*")
_PROBED: Final = 40
_FIRST: Final = 4
_CLOCK: Final = 3600.0
"""Seconds above which the first time of a file is one of the day."""


def is_records(text: str) -> bool:
    """Return whether a text is such records: the first ones have the same fields, which tell who and what."""
    first = [record for record in _records("\n".join(text[:8000].split("\n")[:_PROBED])) if record][:_FIRST]
    if len(first) < 2:
        return False
    shared = set.intersection(*(set(record) for record in first[:-1]))  # the last one may be cut
    turns = [turn_of({key: record[key] for key in shared}) for record in first[:-1]]
    return (
        is_list([*turns]) and all(said_in(one) and who_of(one) != UNKNOWN_SPEAKER for one in turns) and len(shared) > 1
    )


def read_records(source: Source) -> Transcript:
    """Return what the records tell; of one that grows, as it was in the end."""
    found = read_turns([record for record in _records(source.text) if record], source)
    said = found.utterances
    times = [one.at for one in said if one.at is not None]
    if found.started is None and times and len(times) == len(said) and times[0] >= _CLOCK:
        said = [replace(one, at=at) for one, at in zip(said, since_first(times), strict=True)]
    return replace(found, utterances=said)


def _records(text: str) -> Iterator[dict[str, str]]:
    """Yield the fields of each record; a line that has none goes on with the field above it."""
    record: dict[str, str] = {}
    last = ""
    for line in text.split("\n"):
        field = _FIELD.fullmatch(line)
        key = field["key"].strip().lower() if field else ""
        if _RULE.fullmatch(line) or (field and key in record and key == next(iter(record))):
            yield record
            record, last = {}, ""
        if field and (not last or key not in record) and not _RULE.fullmatch(line):
            record[key], last = field["value"], key
        elif last and line.strip() and not _RULE.fullmatch(line):
            record[last] = f"{record[last]} {line.strip()}"
    yield record
