"""Older subtitles, which a library reads: SAMI (.smi), MicroDVD (.sub), MPL2, and TMPlayer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from context_builder.transcript.fields import plain
from context_builder.transcript.formats.html_exports import bounded
from context_builder.transcript.labels import spoken
from context_builder.transcript.repeats import once
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance


@dataclass(frozen=True, slots=True)
class _Kind:
    """Is a kind, as the library calls it, how a file of it begins, and what one of its lines is."""

    name: str
    begins: re.Pattern[str]
    line: re.Pattern[str] | None = None


_KINDS: Final = (
    _Kind("sami", re.compile(r"\s*<sami\b", re.IGNORECASE)),
    _Kind("microdvd", re.compile(r"\s*\{\d+\}\s*\{\d*\}"), re.compile(r"\s*\{\d+\}\s*\{\d*\}.*")),
    _Kind("mpl2", re.compile(r"\s*\[\d+\]\s*\[\d*\]"), re.compile(r"\s*\[-?\d+\]\s*\[-?\d*\].*")),
    _Kind(
        "tmp",
        re.compile(r"\s*\d{1,2}:\d{2}:\d{2}:(?!\d\d(?:\s*[-–>]|\t))(?!\d\d .*\n\d\d:\d\d:\d\d:\d\d )\S"),
        re.compile(r"\s*\d{1,2}:\d{2}:\d{2}:.*"),
    ),
)
Event = tuple[int, int, str]
_RATE: Final = 25.0
"""Frames of a second, where a file of MicroDVD does not say."""


def is_library_subtitles(text: str) -> bool:
    return _kind(text) is not None


def _kind(text: str) -> _Kind | None:
    return next((one for one in _KINDS if one.begins.match(text[:400])), None)


def read_library_subtitles(source: Source) -> Transcript:
    """Return what is said in the subtitles; a line that is none is noted. Raises :class:`ValueError`."""
    kind = _kind(source.text)
    if kind is None:
        raise ValueError("not subtitles")
    for number, line in enumerate(source.text.split("\n") if kind.line else (), start=1):
        if line.strip() and kind.line and not kind.line.fullmatch(line):
            source.problem("not a subtitle", number)
    is_sami = kind.name == "sami"
    events = sorted(bounded(_events_of_sami, source.text) if is_sami else _events(kind.name, source.text))
    return transcript_of(events)


def transcript_of(events: Sequence[Event]) -> Transcript:
    """Return what subtitles say, which are two times in milliseconds and a text each."""
    entries = [text.split("\n") for _, _, text in events]
    said = [
        Utterance(line.speaker or UNKNOWN_SPEAKER, plain(line.text), start / 1000, until=end / 1000)
        for (start, end, _), lines in zip(events, spoken(entries), strict=True)
        for line in lines
    ]
    return Transcript(once(said))


def _events_of_sami(text: str) -> list[Event]:
    first, *rest = text.split("<!--")
    return _events("sami", first + "".join(one.partition("-->")[2] for one in rest))


def _events(kind: str, text: str) -> list[Event]:
    """Return the milliseconds and the text of each subtitle. Raises :class:`ValueError`."""
    from pysubs2 import SSAFile
    from pysubs2.exceptions import Pysubs2Error

    try:
        try:
            found = SSAFile.from_string(text, format_=kind)
        except Pysubs2Error:  # no rate of frames in its first line
            found = SSAFile.from_string(text, format_=kind, fps=_RATE)
    except Pysubs2Error as error:
        raise ValueError(f"not subtitles: {error}") from None
    return [(one.start, one.end, one.plaintext) for one in found if one.plaintext.strip()]
