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
    deepgram,
    discord,
    elevenlabs,
    matrix,
    rev,
    slack,
    speechmatics,
    turns,
    whisper,
    whisper_cpp,
    youtube,
)
from context_builder.transcript.formats.json_lines import read_json_lines
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript


@dataclass(frozen=True, slots=True)
class Format:
    """Is a kind of document: whether one is of it, and how it is read."""

    name: str
    matches: Callable[[Any], bool]
    read: Callable[[Any, Source], Transcript]


CHATS: Final = (
    Format("Matrix", matrix.is_matrix, matrix.read_matrix),
    Format("Discord", discord.is_discord, discord.read_discord),
    Format("Slack", slack.is_slack, slack.read_slack),
)
"""By a list of messages."""

SPEECH: Final = (
    Format("Deepgram", deepgram.is_deepgram, deepgram.read_deepgram),
    Format("Speechmatics", speechmatics.is_speechmatics, speechmatics.read_speechmatics),
    Format("Amazon Transcribe", aws.is_aws, aws.read_aws),
    Format("Rev", rev.is_rev, rev.read_rev),
    Format("ElevenLabs", elevenlabs.is_elevenlabs, elevenlabs.read_elevenlabs),
    Format("YouTube", youtube.is_json3, youtube.read_json3),
    Format("AssemblyAI", assemblyai.is_assemblyai, assemblyai.read_assemblyai),
    Format("whisper.cpp", whisper_cpp.is_whisper_cpp, whisper_cpp.read_whisper_cpp),
    Format("Whisper", whisper.is_whisper, whisper.read_whisper),
)
"""By an object."""

_LISTS: Final = ("messages", "chunk", "events")
"""Where documents hold a chat's messages."""


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
    candidates = [document] if isinstance(document, list) else []
    if isinstance(document, dict):
        if optional_text(document, "error") and not any(key in document for key in ("text", "segments", "results")):
            raise ValueError(f"an error instead of a transcript: {optional_text(document, 'error')[:200]}")
        candidates = [document[key] for key in _LISTS if isinstance(document.get(key), list)]
    for messages in candidates:
        for chat in CHATS:
            if chat.matches(messages):
                return chat.read(messages, source)
    if isinstance(document, dict):
        for speech in SPEECH:
            if speech.matches(document) and (speech.name != "Whisper" or not _is_of_turns(document)):
                return speech.read(document, source)
    if turns.turns_in(document) is not None:
        return turns.read_turns(document, source)
    if isinstance(document, list) and not document:
        return Transcript([])
    known = ", ".join(one.name for one in (*SPEECH, *CHATS))
    raise ValueError(f"not a document as {known} or a meeting tool write it")


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
