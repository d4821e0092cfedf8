"""Records of labelled fields: a line each for who speaks, what is said and when, and a rule or an empty line between.

``Name: Ida``, ``Text: …``, ``Time: 09:02:03``, ``----``. Fields are called as in lists of turns (:mod:`turns`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from context_builder.transcript.formats.turns import is_list, read_turns, told_by, turn_of, who_of
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
    """Yield the fields of each record; any other line goes on with its text, also one that looks like a field.

    Most records, and two at least, have a field, at the same place unless lists of turns call it so; a file that has
    none that tells who or what has others.
    """
    lines = text.split("\n")
    loose = [record for record in _parsed(lines, lambda _: True) if record]
    places = Counter((key, "" if told_by(key) else place) for record in loose for place, key in enumerate(record))
    shared = {key for (key, _), count in places.items() if count > 1 and count > len(loose) / 2}
    told = {told_by(key) for key in shared}
    yield from _parsed(lines, lambda key: key in shared or told_by(key) in {"who", "text"} - told)


def _parsed(lines: Sequence[str], is_field: Callable[[str], bool]) -> Iterator[dict[str, str]]:
    record: dict[str, str] = {}
    last = ""
    for line in lines:
        is_rule = bool(_RULE.fullmatch(line))
        field = None if is_rule else _FIELD.fullmatch(line)
        key = field["key"].strip().lower() if field else ""
        if is_rule or (field and key in record and key == next(iter(record))):
            yield record
            record, last = {}, ""
        if field and key not in record and (not record or is_field(key)):
            record[key], last = field["value"], key
        elif last and line.strip() and not is_rule:
            goes_on = next((one for one in record if told_by(one) == "text"), last)
            record[goes_on] = f"{record[goes_on]} {line.strip()}".strip()
    yield record
