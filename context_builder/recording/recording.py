"""A recording as it is read: line by line, whatever its length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from context_builder.clock import Instant
from context_builder.errors import RecordingError
from context_builder.recording.lines import SCHEMA


@dataclass(frozen=True, slots=True)
class Line:
    """Something that happened. ``number`` counts the file's lines from 1; ``more`` depends on the event."""

    number: int
    event: str
    run: str
    at: Instant
    more: Mapping[str, Any]


class Recording:
    """The recording in ``path``. Lines that were cut off or damaged are passed over."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> Iterator[Line]:
        """All that happened, in order. Raises :class:`RecordingError` when the file is no recording."""
        begun = False
        try:
            with self.path.open("rb") as file:
                for number, raw in enumerate(file, start=1):
                    line = _parse(number, raw)
                    if line is None:
                        continue
                    if line.event == "begin":
                        self._check(line)
                        begun = True
                    if begun:
                        yield line
        except OSError as error:
            raise RecordingError(f"{self.path}: cannot be read: {error.strerror or error}") from None
        if not begun:
            raise RecordingError(f"{self.path}: is no recording of a session")

    def header(self) -> Line:
        """The first line: when the recording began, and of which session."""
        return next(self.lines())

    def published(self, until: float) -> Line:
        """What was published last by epoch second ``until``. Raises :class:`RecordingError` when nothing was."""
        last = None
        for line in self.lines():
            if line.event == "published" and line.at.wall <= until:
                last = line
        if last is None:
            raise RecordingError(f"{self.path}: nothing was published yet; it begins at {self.header().at.iso()}")
        return last

    def _check(self, begin: Line) -> None:
        if begin.more["schema"] > SCHEMA:
            raise RecordingError(
                f"{self.path}: was made by a newer version, {begin.more['version']}; upgrade to read it"
            )


def _parse(number: int, raw: bytes) -> Line | None:
    try:
        fields = orjson.loads(raw)
        wall, monotonic = fields.pop("at")
        at = Instant(wall, monotonic, fields.pop("offset", None))
        return Line(number, fields.pop("event"), fields.pop("run"), at, fields)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        return None
