"""AssemblyAI's streaming: ``Turn``, with ``end_of_turn``, and before it ``FinalTranscript``.

A turn that comes again takes the place of the earlier one, and ``SpeakerRevision`` tells better who spoke in turns.
"""

from __future__ import annotations

from collections.abc import Iterator

from context_builder.transcript.fields import objects, text
from context_builder.transcript.live.stream import MILLISECOND, Message, Stream, time_in
from context_builder.transcript.utterance import Heard, Utterance, speaker_name


def begin(message: Message, stream: Stream) -> list[Utterance]:
    """Begin a session, whose turns count from zero; return what the one before left."""
    stream.session = str(message.get("id"))
    return stream.rest()


def read_turn(message: Message, stream: Stream) -> Iterator[Heard]:
    """Yield what a turn completes. Raises :class:`ValueError`."""
    order = message.get("turn_order")
    if isinstance(order, bool) or not isinstance(order, int):
        raise ValueError('a turn has no "turn_order"')
    turn = ("turn", stream.session, order)
    for other in [name for name in stream.held_names if isinstance(name, tuple) and name != turn]:
        yield from stream.release(other)  # nothing better will come of these
    if message.get("end_of_turn") is not True:
        return
    words = text(message, "transcript", "the turn")
    label = message.get("speaker_label", message.get("speaker"))
    if stream.was_seen(turn):
        yield from stream.corrected(turn, text=words, speaker=None if label is None else speaker_name(label))
        return
    at = next((time_in(one, "start", MILLISECOND) for one in _objects(message.get("words"))), None)
    stream.put(turn, [Utterance(speaker_name(label), words, at, key=turn)] if words else [])
    if message.get("turn_is_formatted") is not False:  # otherwise it may come again, with its punctuation
        yield from stream.release(turn)


def _objects(value: object) -> list[Message]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def read_revision(message: Message, stream: Stream) -> Iterator[Heard]:
    """Yield what a revision says of the speakers of turns. Raises :class:`ValueError`."""
    for one in objects(message.get("revisions") or [], "revisions"):
        turn = ("turn", stream.session, one.get("turn_order"))
        if (label := one.get("speaker_label")) is not None:
            stream.relabel(turn, speaker_name(label))
            yield from stream.corrected(turn, speaker=speaker_name(label))


def read_final_transcript(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what a final transcript of the older interface says. Raises :class:`ValueError`."""
    if message.get("message_type") != "FinalTranscript":
        return
    words = text(message, "text", "the transcript")
    if words and stream.is_new("final", str(message.get("audio_start")), words):
        yield Utterance(speaker_name(message.get("speaker")), words, time_in(message, "audio_start", MILLISECOND))
