"""What programs that transcribe speech write as one JSON document, with who spoke where they tell speakers apart.

As their documentation has them: Deepgram (``results.utterances``, else ``results.channels``), AssemblyAI
(``utterances``, in milliseconds), Whisper and its descendants (``segments``), and whisper.cpp (``transcription``, in
milliseconds).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from context_builder.transcript.fields import number, objects, text
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Utterance

Document = Mapping[str, Any]


def speech(document: Document) -> Iterator[Utterance] | None:
    """Return what was said; None when none of these programs writes such a document.

    Raises :class:`ValueError` naming what is not as it must be, here or while it is read.
    """
    results = document.get("results")
    if isinstance(results, dict) and ("utterances" in results or "channels" in results):
        return _deepgram(results)
    if document.get("utterances") is not None:
        return _said(document["utterances"], "utterances", seconds=0.001)
    if "segments" in document:
        return _said(document["segments"], "segments", seconds=1.0)
    if "transcription" in document:
        return _whisper_cpp(document["transcription"])
    return None


def _said(entries: object, name: str, *, seconds: float, key: str = "text") -> Iterator[Utterance]:
    """Yield an utterance for each entry, whose ``start`` is in units of so many seconds."""
    for place, one in enumerate(objects(entries, name)):
        where = f"{name}[{place}]"
        if words := text(one, key, where):
            start = number(one, "start", where)
            yield Utterance(speaker_name(one.get("speaker")), words, None if start is None else start * seconds)


def _deepgram(results: Document) -> Iterator[Utterance]:
    if results.get("utterances") is not None:
        yield from _said(results["utterances"], "results.utterances", seconds=1.0, key="transcript")
        return
    said: list[Utterance] = []
    for place, channel in enumerate(objects(results.get("channels"), "results.channels")):
        name = f"results.channels[{place}].alternatives"
        alternatives = objects(channel.get("alternatives"), name)
        if alternatives:
            said += by_speaker(objects(alternatives[0].get("words", []), f"{name}[0].words"), f"{name}[0].words")
    yield from sorted(said, key=lambda one: one.at or 0.0)


def by_speaker(words: Sequence[Document], name: str) -> Iterator[Utterance]:
    """Yield an utterance for each run of words by the same speaker."""
    for speaker, run in groupby(enumerate(words), key=lambda word: str(word[1].get("speaker"))):
        first, *_ = spoken = [*run]
        parts = [text(one, "punctuated_word" if "punctuated_word" in one else "word", name) for _, one in spoken]
        yield Utterance(
            speaker_name(first[1].get("speaker")), " ".join(parts), number(first[1], "start", f"{name} {speaker}")
        )


def _whisper_cpp(entries: object) -> Iterator[Utterance]:
    for place, one in enumerate(objects(entries, "transcription")):
        name = f"transcription[{place}]"
        offsets = one.get("offsets")
        start = number(offsets, "from", name) if isinstance(offsets, dict) else None
        if words := text(one, "text", name):
            yield Utterance(speaker_name(one.get("speaker")), words, None if start is None else start / 1000)


def speaker_name(label: object) -> str:
    """Return how a speaker is called, who is not the assistant whatever name somebody took; those who are only told
    apart are numbered or lettered.
    """
    if label is None or isinstance(label, bool) or label in ("", "?"):
        return UNKNOWN_SPEAKER
    name = str(label)
    if name == "Consilience":
        return f"{name} (speaker)"
    return f"Speaker {name}" if len(name) == 1 or name.isdigit() else name
