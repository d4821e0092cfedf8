"""Older subtitles, which a library reads: SAMI (.smi), MicroDVD (.sub), MPL2, and TMPlayer."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from context_builder.analysis.bounded_process import BoundedProcess, TookTooLong
from context_builder.transcript.fields import plain
from context_builder.transcript.formats.html_exports import LONGEST, SMALL
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
    _Kind("tmp", re.compile(r"\s*\d{1,2}:\d{2}:\d{2}:\S"), re.compile(r"\s*\d{1,2}:\d{2}:\d{2}:.*")),
)
_RATE: Final = 25.0
"""Frames of a second, where a file of MicroDVD does not say."""

_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)


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
    events = sorted(_events_in_time(kind.name, source.text))
    entries = [text.split("\n") for _, _, text in events]
    said = [
        Utterance(line.speaker or UNKNOWN_SPEAKER, plain(line.text), start / 1000, until=end / 1000)
        for (start, end, _), lines in zip(events, spoken(entries), strict=True)
        for line in lines
    ]
    return Transcript(once(said))


def _events_in_time(kind: str, text: str) -> list[tuple[int, int, str]]:
    """Return the subtitles; those with markup are read in a process of its own, as some take very long."""
    if kind != "sami" or len(text) <= SMALL:
        return _events(kind, text)
    with closing(BoundedProcess(LONGEST)) as process:
        try:
            return process.call(_events, kind, text)
        except TookTooLong:
            raise ValueError(f"subtitles that take more than {LONGEST:g} s to read") from None


def _events(kind: str, text: str) -> list[tuple[int, int, str]]:
    """Return the milliseconds and the text of each subtitle. Raises :class:`ValueError`."""
    from pysubs2 import SSAFile
    from pysubs2.exceptions import Pysubs2Error

    text = _COMMENT.sub("", text) if kind == "sami" else text
    try:
        try:
            found = SSAFile.from_string(text, format_=kind)
        except Pysubs2Error:  # no rate of frames in its first line
            found = SSAFile.from_string(text, format_=kind, fps=_RATE)
    except Pysubs2Error as error:
        raise ValueError(f"not subtitles: {error}") from None
    return [(one.start, one.end, one.plaintext) for one in found if one.plaintext.strip()]
