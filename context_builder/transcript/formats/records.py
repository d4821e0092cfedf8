"""Records of labelled fields: a line each for who speaks, what is said and when, and a rule or an empty line between.

``Name: Ida``, ``Text: …``, ``Time: 09:02:03``, ``----``. Fields are called as in lists of turns (:mod:`turns`). Others
that tell something, such as ``Today: …`` of a stand-up, are said as well, with their labels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from context_builder.transcript.formats.turn import text_of as said_in
from context_builder.transcript.formats.turn import turn_of, who_of
from context_builder.transcript.formats.turn_fields import told_by
from context_builder.transcript.formats.turns import is_list, read_turns
from context_builder.transcript.labels import is_written_as_name
from context_builder.transcript.offsets import since_first
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript

_FIELD: Final = re.compile(
    r"\s*(?:[-*]\s+)?[*_]{0,2}(?P<key>[A-Za-z][A-Za-z_ ]{0,24}?)[*_]{0,2}\s?:[*_]{0,2}\s*(?P<value>.*)"
)
_RULE: Final = re.compile(r"\s*([-=*_~#])\1{2,}\s*")
_NAME_ALONE: Final = re.compile(r"\s*(?:#+\s+)?[*_]{0,2}(?P<name>[^\W\d_][^:*_\n]{0,59}?)[*_]{0,2}:?[*_]{0,2}\s*")
_NAME: Final = re.compile(r"[^\W\d_][\w.'’() -]{0,38}[\w)]")
_PARTIES: Final = ("user", "role")
"""Fields that tell who as chats with models do, whose questions and answers may look like records."""

_FEW: Final = 2
"""Words of a value that need say nothing, such as a device's name."""

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
    lines = _with_names(text.split("\n"))
    loose = [record for record in _parsed(lines, lambda _: True) if record]
    places = Counter((key, "" if told_by(key) else place) for record in loose for place, key in enumerate(record))
    shared = {key for (key, _), count in places.items() if count > 1 and count > len(loose) / 2}
    told = {told_by(key) for key in shared}
    yield from _with_prose([*_parsed(lines, lambda key: key in shared or told_by(key) in {"who", "text"} - told)])


def _with_names(lines: list[str]) -> list[str]:
    """Return lines with ``Name: Ida`` for ``Ida:``, where that stands alone above the fields of each paragraph."""
    starts = [
        place
        for place, line in enumerate(lines)
        if line.strip() and not "".join(lines[max(0, place - 1) : place]).strip()
    ]
    names = {place: _NAME_ALONE.fullmatch(lines[place]) for place in starts}
    fields = [_FIELD.fullmatch(line) for place, line in enumerate(lines) if line.strip() and place not in names]
    keys = Counter(one["key"] for one in fields if one)
    is_of_names = all(one and is_written_as_name(one["name"]) for one in names.values())
    if len(names) < 2 or not is_of_names or not keys or not all(fields) or min(keys.values()) < len(names):
        return lines
    return [f"name: {one['name']}" if (one := names.get(place)) else line for place, line in enumerate(lines)]


def _with_prose(records: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    """Yield records whose text has what other fields say, with their labels.

    Where none is a text, people's names tell that it is theirs: all fields of a stand-up, of which there are several.
    """
    told = [record for record in records if record]
    counts = Counter(key for record in told for key in record if not told_by(key))
    others = [key for key, count in counts.items() if count > len(told) / 2]
    prose = [key for key in others if _is_prose([one.get(key, "") for one in told])]
    names = [value for record in told for key, value in record.items() if told_by(key) == "who" and key not in _PARTIES]
    are_people = len(names) >= len(told) and all(map(_NAME.fullmatch, names))
    if any(told_by(key) == "text" for record in told for key in record):
        said = [key for key in prose if len({one.get(key, "") for one in told}) > 1]
    else:
        said = others if prose and len(others) > 1 and are_people else []
    for record in records:
        key = next((one for one in record if told_by(one) == "text"), "text")
        parts = [record.get(key, ""), *(f"{one.capitalize()}: {record[one]}" for one in said if record.get(one))]
        rest = {one: value for one, value in record.items() if one not in said}
        yield {**rest, key: " ".join(part for part in parts if part)} if record and said else record


def _is_prose(values: Sequence[str]) -> bool:
    """Return whether a field says something in words or sentences, as no language or number does."""
    return any(
        (len(value.split()) > _FEW or value.endswith((".", "?", "!"))) and any(map(str.isalpha, value))
        for value in values
    )


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
