"""Gladia: ``transcript``, with an utterance that is final or not."""

from __future__ import annotations

from collections.abc import Iterator

from context_builder.transcript.fields import inner, text
from context_builder.transcript.live.stream import Message, Stream
from context_builder.transcript.utterance import Utterance, speaker_name


def read_gladia(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what a final utterance says. Raises :class:`ValueError`."""
    data = inner(message, "data")
    utterance = inner(data, "utterance")
    if data.get("is_final") is not True:
        return
    words = text(utterance, "text", "the utterance")
    if words and stream.is_new("gladia", str(message.get("session_id")), str(data.get("id")), words):
        yield Utterance(speaker_name(utterance.get("speaker")), words)
