"""3Play Media's JSON: ``words`` as pairs of milliseconds and text, and the times at which speakers begin.

https://support.3playmedia.com/hc/en-us/articles/227729968-Captions-Formats-JSON
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from context_builder.transcript.fields import Object, inner
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, speaker_name
from context_builder.transcript.word_runs import SpokenWord, runs


def is_three_play(document: Object) -> bool:
    words = document.get("words")
    return isinstance(words, list) and any(_pair(one) for one in words[:5])


def read_three_play(document: Object, source: Source) -> Transcript:
    """Return the transcript; words that are no pair are noted."""
    return Transcript([*runs(_words(document, source))])


def _words(document: Object, source: Source) -> Iterator[SpokenWord]:
    names = inner(document, "speakers")
    starts = sorted((float(time), speaker_name(name)) for time, name in names.items() if time.isdigit())
    speaker, place = UNKNOWN_SPEAKER, 0
    for number, one in enumerate(document["words"]):
        if (pair := _pair(one)) is None:
            source.problem(f"words[{number}] is not a time and a text")
            continue
        time, text = pair
        while place < len(starts) and starts[place][0] <= time:
            speaker, place = starts[place][1], place + 1
        if text.strip():
            yield SpokenWord(text.strip(), speaker, time / 1000)


def _pair(one: Any) -> tuple[float, str] | None:
    match one:
        case [str(time), str(text)] if time.isdigit() and len(time) < 12:
            return float(time), text
        case [int(time), str(text)]:
            return float(time), text
    return None
