"""whisper.cpp's JSON: ``transcription``, with times in milliseconds."""

from __future__ import annotations

from context_builder.transcript.fields import Object, each_object, inner, optional_text, seconds
from context_builder.transcript.formats.whisper import labelled
from context_builder.transcript.repeats import once
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, Utterance, speaker_name


def is_whisper_cpp(document: Object) -> bool:
    return "transcription" in document and not isinstance(document["transcription"], dict | str)


def read_whisper_cpp(document: Object, source: Source) -> Transcript:
    """Return the transcript. Raises :class:`ValueError` where ``transcription`` is no list."""
    said: list[Utterance] = []
    for where, one in each_object(document["transcription"], "transcription", source):
        if words := optional_text(one, "text"):
            offsets = inner(one, "offsets")
            start, end = seconds(offsets, "from", where, source, 0.001), seconds(offsets, "to", where, source, 0.001)
            said.append(Utterance(speaker_name(one.get("speaker")), words, start, until=end))
        elif not isinstance(one.get("text"), str):
            source.problem(f'{where} has no "text"')
    return Transcript(once(labelled(said)))
