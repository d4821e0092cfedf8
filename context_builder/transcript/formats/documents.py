"""JSON documents, by whichever program they were written: found in a table by what they hold."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from context_builder.transcript.fields import Object, optional_text, parse
from context_builder.transcript.formats import (
    assemblyai,
    aws,
    azure,
    deepgram,
    elevenlabs,
    google_speech,
    rev,
    speechmatics,
    turns,
    watson,
    whisper,
    whisper_cpp,
    youtube,
)
from context_builder.transcript.formats.chats import CHATS, read_chat
from context_builder.transcript.formats.json_lines import read_json_lines
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript


@dataclass(frozen=True, slots=True)
class Format:
    """Is a kind of document: whether one is of it, and how it is read."""

    name: str
    matches: Callable[[Any], bool]
    read: Callable[[Any, Source], Transcript]


SPEECH: Final = (
    Format("Deepgram", deepgram.is_deepgram, deepgram.read_deepgram),
    Format("Watson", watson.is_watson, watson.read_watson),
    Format("Google", google_speech.is_google, google_speech.read_google),
    Format("Speechmatics", speechmatics.is_speechmatics, speechmatics.read_speechmatics),
    Format("Azure", azure.is_azure, azure.read_azure),
    Format("Amazon Transcribe", aws.is_aws, aws.read_aws),
    Format("Rev", rev.is_rev, rev.read_rev),
    Format("ElevenLabs", elevenlabs.is_elevenlabs, elevenlabs.read_elevenlabs),
    Format("YouTube", youtube.is_json3, youtube.read_json3),
    Format("AssemblyAI", assemblyai.is_assemblyai, assemblyai.read_assemblyai),
    Format("whisper.cpp", whisper_cpp.is_whisper_cpp, whisper_cpp.read_whisper_cpp),
    Format("Whisper", whisper.is_whisper, whisper.read_whisper),
)
"""By an object."""

_WRAPPERS: Final = ("result", "results", "data", "output", "response", "transcription", "transcript", "body")
"""Where services put what they return of another one's."""


def is_json(text: str) -> bool:
    """Return whether a text begins as JSON does; a label or a time may begin with a bracket, too."""
    return bool(re.match(r"\s*(?:\{\s*[\"}]|\[\s*[{\]])", text[:400]))


def read_document(source: Source) -> Transcript:
    """Return the transcript in a JSON document, or in lines of JSON. Raises :class:`ValueError`."""
    try:
        document = parse(source.text)
    except ValueError:
        lines = [line for line in source.text.split("\n") if line.strip()]
        if len(lines) > 1 and all(line.lstrip().startswith("{") for line in lines[:2]) and _is_json(lines[0]):
            return read_json_lines(source)
        raise
    return read_parsed(document, source)


def read_parsed(document: Any, source: Source) -> Transcript:
    """Return the transcript in a document that is parsed. Raises :class:`ValueError`."""
    error = optional_text(document, "error") if isinstance(document, dict) else ""
    if error and not any(key in document for key in ("text", "segments", "results")):
        raise ValueError(f"an error instead of a transcript: {error[:200]}")
    if (chat := read_chat(document, source)) is not None:
        return chat
    if (speech := _speech_of(document)) is not None:
        return speech.read(document, source)
    if isinstance(document, dict):
        for key in _WRAPPERS:
            if (speech := _speech_of(document.get(key))) is not None:
                return speech.read(document[key], source)
    if turns.turns_in(document) is not None:
        return turns.read_turns(document, source)
    if isinstance(document, list) and not document:
        return Transcript([])
    known = ", ".join(one.name for one in (*SPEECH, *CHATS))
    raise ValueError(f"not a document as {known} or a meeting tool write it")


def _speech_of(document: Any) -> Format | None:
    """Return the kind of a document, if it is of speech."""
    if not isinstance(document, dict):
        return None
    found = next((one for one in SPEECH if one.matches(document)), None)
    return None if found is None or (found.name == "Whisper" and _is_of_turns(document)) else found


def _is_of_turns(document: Object) -> bool:
    """Return whether segments have names for fields that Whisper's have not."""
    segments = document.get("segments")
    some = [one for one in segments[:5] if isinstance(one, dict)] if isinstance(segments, list) else []
    return bool(some) and not any("text" in one for one in some) and turns.turns_in(document) is not None


def _is_json(line: str) -> bool:
    try:
        parse(line)
    except ValueError:
        return False
    return True
