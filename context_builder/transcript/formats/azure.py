"""Azure's speech: batch transcription (``recognizedPhrases``, in ticks of 100 ns), the fast one (``phrases``, in ms).

https://learn.microsoft.com/azure/ai-services/speech-service/batch-transcription-get
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from context_builder.transcript.fields import Object, each_object, optional_text, seconds
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, channel_name, speaker_name
from context_builder.transcript.word_runs import sentences

_TICK, _MILLISECOND = 1e-7, 1e-3
_DURATION: Final = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?")


def is_azure(document: Object) -> bool:
    return any(key in document for key in ("recognizedPhrases", "combinedRecognizedPhrases", "combinedPhrases"))


def read_azure(document: Object, source: Source) -> Transcript:
    """Return the transcript: of its phrases, in the order of time, else of each channel's whole text."""
    key = "recognizedPhrases" if "recognizedPhrases" in document else "phrases"
    said = [*_phrases(document.get(key) or [], key, source)]
    if not said:
        whole = "combinedRecognizedPhrases" if "combinedRecognizedPhrases" in document else "combinedPhrases"
        for _, one in each_object(document.get(whole) or [], whole, source):
            text = optional_text(one, "display", "text", "lexical")
            several = len(document[whole]) > 1
            said += [Utterance(_who(one, several=several), each) for each in sentences(text)]
    return Transcript(sorted(said, key=lambda one: one.at or 0.0))


def _phrases(entries: object, key: str, source: Source) -> Iterator[Utterance]:
    listed = [*each_object(entries, key, source)]
    several = len({one.get("channel") for _, one in listed if isinstance(one.get("channel"), int | str)}) > 1
    for where, one in listed:
        guesses = one.get("nBest")
        best = next((each for each in guesses if isinstance(each, dict)), {}) if isinstance(guesses, list) else one
        if text := optional_text(best, "display", "text", "itn", "lexical"):
            name, unit = ("InTicks", _TICK) if "offsetInTicks" in one else ("Milliseconds", _MILLISECOND)
            at, long = (seconds(one, f"{key}{name}", where, source, unit) for key in ("offset", "duration"))
            at = _duration(one.get("offset")) if at is None else at
            long = _duration(one.get("duration")) if long is None else long
            until = None if at is None or long is None else at + long
            yield Utterance(_who(one, several=several), text, at, until=until)


def _duration(value: object) -> float | None:
    """Return the seconds of a duration such as ``PT1M3.5S``."""
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    return (
        None
        if found is None
        else sum(float(one or 0) * unit for one, unit in zip(found.groups(), (3600, 60, 1), strict=True))
    )


def _who(phrase: Object, *, several: bool) -> str:
    """Return who says a phrase; speaker 0 is one who was not told apart."""
    speaker, channel = phrase.get("speaker") or None, phrase.get("channel")
    if several and isinstance(channel, int | str):
        return channel_name(channel, speaker)
    return UNKNOWN_SPEAKER if speaker is None else speaker_name(speaker)
