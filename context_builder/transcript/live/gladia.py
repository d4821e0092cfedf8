"""Gladia: ``transcript``, with an utterance that is final or not."""

from __future__ import annotations

from collections.abc import Iterator

from context_builder.transcript.fields import inner, text
from context_builder.transcript.live.stream import Message, Stream
from context_builder.transcript.utterance import Utterance, channel_name, speaker_name


def read_gladia(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what a final utterance says. Raises :class:`ValueError`."""
    data = inner(message, "data")
    utterance = inner(data, "utterance")
    if data.get("is_final") is not True:
        return
    words = text(utterance, "text", "the utterance")
    if words and stream.is_new("gladia", str(message.get("session_id")), str(data.get("id")), words):
        speaker, channel = utterance.get("speaker"), utterance.get("channel")
        is_channel = speaker is None and isinstance(channel, int)
        yield Utterance(channel_name(channel) if is_channel else speaker_name(speaker), words)
