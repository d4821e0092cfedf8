"""Gladia: ``transcript``, with an utterance that is final or not, and after the session what it was as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from context_builder.transcript.fields import Object, inner, objects, text
from context_builder.transcript.live.stream import Message, Stream
from context_builder.transcript.utterance import Utterance, channel_name, speaker_name


def read_gladia(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what a final utterance says. Raises :class:`ValueError`."""
    data = inner(message, "data")
    if data.get("is_final") is True:
        yield from _said(inner(data, "utterance"), message, str(data.get("id")), stream)


def is_after(message: Message) -> bool:
    """Return whether it comes after the session: the transcript once more, a summary, and the like."""
    return str(message.get("type")).startswith("post_") and isinstance(message.get("data"), dict)


def read_after(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what was said in a session of which no final utterance came before. Raises :class:`ValueError`."""
    told = inner(message, "data", "transcription") or inner(message, "data")
    utterances = told.get("utterances")
    if isinstance(utterances, list) and not stream.was_seen(_session(message)):
        for place, one in enumerate(objects(utterances, "utterances")):
            yield from _said(one, message, str(place), stream)


def _said(utterance: Object, message: Message, name: str, stream: Stream) -> Iterator[Utterance]:
    words = text(utterance, "text", "the utterance")
    if words and stream.is_new("gladia", str(message.get("session_id")), name, words):
        stream.is_new(*_session(message))
        speaker, channel = utterance.get("speaker"), utterance.get("channel")
        is_channel = speaker is None and isinstance(channel, int)
        yield Utterance(channel_name(channel) if is_channel else speaker_name(speaker), words)


def _session(message: Message) -> tuple[str, str]:
    return "gladia's", str(message.get("session_id"))
