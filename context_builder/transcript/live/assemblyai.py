"""AssemblyAI's streaming: ``Turn``, with ``end_of_turn``, and before it ``FinalTranscript``."""

from __future__ import annotations

from collections.abc import Iterator

from context_builder.transcript.fields import text
from context_builder.transcript.live.stream import Message, Stream
from context_builder.transcript.utterance import Utterance, speaker_name


def begin(message: Message, stream: Stream) -> list[Utterance]:
    """Begin a session, whose turns count from zero; return what the one before left."""
    stream.session = str(message.get("id"))
    return stream.rest()


def read_turn(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what a turn completes. Raises :class:`ValueError`."""
    order = message.get("turn_order")
    if isinstance(order, bool) or not isinstance(order, int):
        raise ValueError('a turn has no "turn_order"')
    turn = ("turn", stream.session, order)
    for other in [name for name in stream.held_names if isinstance(name, tuple) and name != turn]:
        yield from stream.release(other)  # nothing better will come of these
    if message.get("end_of_turn") is not True or stream.was_seen(turn):
        return
    words = text(message, "transcript", "the turn")
    label = message.get("speaker_label", message.get("speaker"))
    stream.put(turn, [Utterance(speaker_name(label), words)] if words else [])
    if message.get("turn_is_formatted") is not False:  # otherwise it may come again, with its punctuation
        yield from stream.release(turn)


def read_final_transcript(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what a final transcript of the older interface says. Raises :class:`ValueError`."""
    if message.get("message_type") != "FinalTranscript":
        return
    words = text(message, "text", "the transcript")
    if words and stream.is_new("final", str(message.get("audio_start")), words):
        yield Utterance(speaker_name(message.get("speaker")), words)
