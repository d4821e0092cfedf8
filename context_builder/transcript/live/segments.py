"""WhisperLive and its like: ``segments``, of which ``completed`` ones come again and again; and plain objects."""

from __future__ import annotations

from collections.abc import Iterator

from context_builder.transcript.fields import number, objects, text
from context_builder.transcript.live.stream import Message, Stream
from context_builder.transcript.utterance import Utterance, channel_name, speaker_name


def read_segments(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what is new of the segments that are complete. Raises :class:`ValueError`."""
    segments = objects(message["segments"], "segments")
    tells = any("completed" in one for one in segments)
    final = [one for one in segments if one.get("completed") is True] if tells else segments[:-1]
    for one in final:
        yield from _said(one, str(message.get("uid") or ""), stream)


def read_plain(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what an object with a text says, if it is final. Raises :class:`ValueError`."""
    yield from _said(message, str(message.get("uid") or ""), stream)


def _said(message: Message, name: str, stream: Stream) -> Iterator[Utterance]:
    if any(message.get(key) is False for key in ("is_final", "final", "completed")):
        return
    if words := text(message, "text", "the segment"):
        said = Utterance(_speaker(message), words, _time(message, "start"), until=_time(message, "end"))
        if (new := stream.unsaid(name, said)) is not None:
            yield new


def _speaker(message: Message) -> str:
    channel = message.get("channel")
    is_channel = message.get("speaker") is None and isinstance(channel, int | str) and not isinstance(channel, bool)
    return channel_name(channel) if is_channel else speaker_name(message.get("speaker"))


def _time(message: Message, key: str) -> float | None:
    try:
        return number(message, key, "the segment")
    except ValueError:
        return None
