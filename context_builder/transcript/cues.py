"""This module parses subtitle files: WebVTT (https://www.w3.org/TR/webvtt1/) and SubRip.

Both are blocks between empty lines, with a line of times such as
``00:01:02.500 --> 00:01:04.000`` above what was said; what comes before that line names the
block. So one parser reads both. A block without that line goes on with the one before it:
people do leave empty lines inside what somebody says.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from context_builder.errors import TranscriptError
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Utterance

_SILENT: Final = re.compile(r"(WEBVTT|NOTE|STYLE|REGION)(\s|$)")
"""First line of a WebVTT block in which nobody speaks."""

_TIMES: Final = re.compile(r"\s*(?P<start>\S+)\s+-->\s+\S+")
_TIME: Final = re.compile(r"(?:(\d{1,6}):)?([0-5]\d):([0-5]\d)(?:[.,](\d{1,3}))?")
# A tag ends before the next one begins, so that looking for the end of one that has none does not read on to the end.
_VOICE: Final = re.compile(r"<v(?:\.[^\s<>]*)?\s(?P<speaker>[^<>]*)>")
_TAG: Final = re.compile(r"</?(?:[a-zA-Z][^<>]*|\d[\d:.]*)?>|\{\\[^{}]*\}")
_BEYOND_UNICODE: Final = re.compile(r"&#[0-9]{8,};?")
"""A character reference that :func:`html.unescape` fails on: Python refuses to read integers of thousands of digits."""

_PREFIX: Final = re.compile(r"(?:[-–>]+\s*)?(?P<speaker>[^\W\d_][\w.'’()\- ]{0,39}?)\s*:\s+(?P<text>\S.*)")
"""``Name: text``. A name begins with a letter and has up to 40 characters and 4 words, so that a
sentence with a colon in it is no name."""


def parse_cues(text: str, name: str) -> list[Utterance]:
    """Return the utterances in the subtitles ``text``, in the order of the file.

    Raises :class:`TranscriptError` naming the line in ``name``.
    """
    numbered = enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1)
    utterances: list[Utterance] = []
    at: float | None = None
    for empty, lines in groupby(numbered, key=lambda line: not line[1].strip()):
        block = list(lines)
        if empty or _SILENT.match(block[0][1]):
            continue
        said = next((index for index, (_, line) in enumerate(block, start=1) if "-->" in line), 0)
        line_number, line = block[max(said - 1, 0)]
        try:
            at = _start(line) if said else at
        except ValueError as error:
            raise TranscriptError(f"{name}:{line_number}: {error}") from None
        if at is None:
            raise TranscriptError(f"{name}:{line_number}: text without a line of times above it")
        utterances.extend(_said([line for _, line in block[said:]], at))
    return utterances


def _start(line: str) -> float:
    """Return the seconds at which the cue with this line of times begins."""
    times = _TIMES.match(line)
    time = _TIME.fullmatch(times["start"]) if times else None
    if time is None:
        raise ValueError("not a line of times such as 00:01:02.500 --> 00:01:04.000")
    hours, minutes, seconds, fraction = time.groups(default="0")
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction}")


def _said(lines: list[str], at: float) -> Iterator[Utterance]:
    """Yield one utterance for each run of lines of the same speaker; a line without one goes on with the last."""
    speaker, words = UNKNOWN_SPEAKER, list[str]()
    for line in lines:
        for spoken_by, text in _voices(line):
            if spoken_by and spoken_by != speaker:
                if words:
                    yield Utterance(speaker, " ".join(words), at)
                speaker, words = spoken_by, []
            if text:
                words.append(text)
    if words:
        yield Utterance(speaker, " ".join(words), at)


def _voices(line: str) -> Iterator[tuple[str, str]]:
    """Yield speaker and plain text of each voice in a line; the speaker is empty when the line names none."""
    before, *voices = _VOICE.split(line)
    text = _plain(before)
    if text and not voices and (prefix := _PREFIX.fullmatch(text)) and len(prefix["speaker"].split()) <= 4:
        yield prefix["speaker"], prefix["text"]
    elif text:
        yield "", text
    for speaker, spoken in zip(voices[::2], voices[1::2], strict=True):
        yield _plain(speaker), _plain(spoken)


def _plain(marked: str) -> str:
    text = _BEYOND_UNICODE.sub("\N{REPLACEMENT CHARACTER}", _TAG.sub("", marked))
    return " ".join(html.unescape(text).split())
