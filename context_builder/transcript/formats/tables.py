"""Tables of what was said: Whisper's ``.tsv``, whisper.cpp's ``.csv``, Audacity's labels, and meeting tools' own."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from context_builder.timestamps import moment
from context_builder.transcript.fields import plain
from context_builder.transcript.formats.whisper import labelled
from context_builder.transcript.moments import epoch_seconds, iso
from context_builder.transcript.offsets import offset
from context_builder.transcript.repeats import once
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, name_of, speaker_name

_ISO: Final = re.compile(r"\s*\d{4}-\d\d-\d\d[T ]\d")
_LONGEST_FIELD: Final = 2**24
_COLUMNS: Final = {
    "start": ("start", "start time", "start_time", "starttime", "begin", "from", "time", "timestamp", "timecode"),
    "date": ("date", "datetime", "created_at", "post creation time"),
    "end": ("end", "end time", "end_time", "endtime", "to", "stop"),
    "speaker": (
        "speaker",
        "speaker name",
        "speaker_name",
        "speakername",
        "name",
        "who",
        "author",
        "username",
        "sender",
    ),
    "text": (
        "text",
        "sentence",
        "transcript",
        "content",
        "contents",
        "post message",
        "message",
        "body",
        "utterance",
        "words",
        "caption",
        "dialogue",
    ),
}
"""How the columns are called, in small letters."""


def read_tsv(source: Source) -> Transcript:
    """Return the transcript in a table with tabs; without a heading as Audacity has labels: start, end, text."""
    return _read(source, "\t")


def is_labels(text: str) -> bool:
    """Return whether a text is Audacity's labels, by its first line."""
    return bool(re.match(r"\s*\d+\.\d+\t\d+\.\d+\t\S", text))


def read_csv(source: Source) -> Transcript:
    """Return the transcript in a table with commas, or with semicolons."""
    heading = source.text.partition("\n")[0]
    return _read(source, max(",;\t", key=heading.count))


def _read(source: Source, delimiter: str) -> Transcript:
    csv.field_size_limit(_LONGEST_FIELD)
    rows = csv.reader(
        io.StringIO(source.text),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if delimiter != "\t" else csv.QUOTE_NONE,
    )
    said: list[Utterance] = []
    dates: list[float | None] = []
    columns: dict[str, int] | None = None
    unit, width = 1.0, 0
    try:
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            if columns is None:
                columns, is_heading = _columns(row)
                unit = 0.001 if is_heading and _is_milliseconds(row, source.text) else 1.0
                width = len(row) if is_heading else columns["text"] + 1
                if is_heading:
                    continue
            if (place := columns.get("start", len(row))) < len(row) and _ISO.match(row[place]):
                columns["date"] = columns.pop("start")
            with source.one_entry(rows.line_num):
                found = _utterance(row, columns, unit, width)
                said += found
                dates += [None if "start" in columns else _date(row, columns, source, rows.line_num) for _ in found]
    except csv.Error as error:
        source.problem(error, rows.line_num)
    told = [date for date in dates if date is not None]
    if not told:
        return Transcript(once(labelled(said)))
    first, started = min(told), moment(min(told))
    said = [replace(one, at=None if date is None else date - first) for one, date in zip(said, dates, strict=True)]
    if len(told) == len(said):
        said.sort(key=lambda one: one.at or 0.0)
    return Transcript(said, started.astimezone() if started else None)


def _date(row: Sequence[str], columns: dict[str, int], source: Source, line: int) -> float | None:
    """Return the epoch seconds of a chat's message; None where there is no date that can be read, which is noted."""
    place = columns.get("date", len(row))
    if place < len(row) and row[place].strip():
        with source.one_entry(line):
            cell = row[place].strip()
            return epoch_seconds(int(cell), "the date") if cell.isdigit() else iso(cell).timestamp()
    return None


def _columns(row: Sequence[str]) -> tuple[dict[str, int], bool]:
    """Return where the columns are, and whether the row is their heading."""
    cells = [cell.strip().strip('\ufeff"').lower() for cell in row]
    found = {kind: place for kind, names in _COLUMNS.items() for place in _places(cells, names)}
    if "text" in found:
        return found, True
    if len(row) >= 4:
        return {"start": 0, "end": 1, "speaker": 2, "text": 3}, False
    return {"start": 0, "end": 1, "text": len(row) - 1}, False


def _places(cells: Sequence[str], names: Sequence[str]) -> list[int]:
    return next(([cells.index(name)] for name in names if name in cells), [])


def _is_milliseconds(heading: Sequence[str], text: str) -> bool:
    """Return whether the times of a table are whole numbers, as Whisper and whisper.cpp write milliseconds."""
    line = text.partition("\n")[2].lstrip("\n").partition("\n")[0]
    return len(heading) > 1 and bool(re.match(r'\s*"?\d+"?\s*[,;\t]\s*"?\d+"?\s*[,;\t]', line))


def _utterance(row: Sequence[str], columns: dict[str, int], unit: float, width: int) -> list[Utterance]:
    cells = {kind: row[place].strip() if place < len(row) else "" for kind, place in columns.items()}
    if columns["text"] == max(columns.values()) and len(row) > width:  # commas of a text that has no quotation marks
        cells["text"] = ",".join(row[columns["text"] : columns["text"] + 1 + len(row) - width])
    text = plain(cells["text"])
    speaker = speaker_name(name_of(cells["speaker"])) if cells.get("speaker") else UNKNOWN_SPEAKER
    if not text:
        return []
    return [Utterance(speaker, text, _time(cells.get("start"), unit), until=_time(cells.get("end"), unit))]


def _time(cell: str | None, unit: float) -> float | None:
    if not cell:
        return None
    if ":" in cell:
        return offset(cell.strip("[]()"))
    return float(cell) * unit if re.fullmatch(r"\d{1,12}(?:\.\d{1,12})?", cell) else None
