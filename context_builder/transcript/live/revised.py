"""Services that may join what they said with more, tell it better, or say it again: Deepgram, AssemblyAI and others.

* Deepgram: ``Results``, whose utterance ends with ``speech_final``, and Flux' ``TurnInfo``
* AssemblyAI: ``Turn``, with ``end_of_turn``, and before it ``FinalTranscript``; a turn that comes again takes the place
  of the earlier one, and ``SpeakerRevision`` tells better who spoke in turns
* Speechmatics: ``AddTranscript`` with words and punctuation, joined until an utterance ends; and ``AddSegment``
  (https://docs.speechmatics.com/api-ref/realtime-transcription-websocket)
* Gladia: ``transcript``, with an utterance that is final or not, and after the session what it was as a whole
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from context_builder.transcript.fields import Object, inner, objects, optional_text, some_objects, text
from context_builder.transcript.formats.speech_utterances import deepgram_speaker, deepgram_words
from context_builder.transcript.formats.speech_words import speechmatics_words
from context_builder.transcript.live.stream import MILLISECOND, Message, Stream, time_in
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Heard, Utterance, channel_name, speaker_name
from context_builder.transcript.word_runs import runs


def read_deepgram(message: Message, stream: Stream) -> Iterator[Heard]:
    """Yield what a message completes; a final part that comes again in other words corrects what was said.

    Raises :class:`ValueError`.
    """
    if message.get("is_final") is not True:
        return
    channel = message.get("channel")
    if not isinstance(channel, dict):
        raise ValueError("channel is not an object")
    alternatives = objects(channel.get("alternatives"), "channel.alternatives")
    request = inner(message, "metadata").get("request_id")
    place, channels = _channel(message.get("channel_index"))
    transcript = str(alternatives[0].get("transcript")) if alternatives else ""
    start = message.get("start")
    began = float(start) if isinstance(start, int | float) else str(start)
    part = ("deepgram", str(request), place, began)
    new = stream.is_new(*part, transcript)
    if alternatives and new and stream.is_part(part):
        yield from stream.corrected_part(part, transcript)
    elif alternatives and new:
        stream.hold_part(
            part, place, [*_alternative(alternatives[0], place if channels > 1 else None, time_in(message, "start"))]
        )
    if message.get("speech_final") is True or message.get("from_finalize") is True or stream.is_long(place):
        yield from stream.release(place)


def read_flux(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what a turn of Flux says when it ends."""
    turn = ("flux", str(message.get("request_id")), str(message.get("turn_index")))
    ended = message.get("event") == "EndOfTurn"
    if ended and (words := text(message, "transcript", "the turn")) and stream.is_new(*turn):
        yield Utterance(UNKNOWN_SPEAKER, words)


def _alternative(alternative: Message, channel: int | None, start: float | None) -> Iterator[Utterance]:
    """Yield what an alternative says, by speaker where words have some; else by channel where there are several."""
    listed = objects(alternative.get("words") or [], "words")
    if any(word.get("speaker") is not None for word in listed):
        yield from runs(deepgram_words(listed, "words", Source("words"), channel))
    elif said := text(alternative, "transcript", "the alternative"):
        first = time_in(listed[0], "start") if listed else None
        yield Utterance(deepgram_speaker(channel, None), said, start if first is None else first)


def _channel(index: Any) -> tuple[int, int]:
    """Return which channel it is, of how many."""
    match index:
        case [int(place), int(count)]:
            return place, count
    return 0, 1


def begin_turns(message: Message, stream: Stream) -> list[Utterance]:
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
    at = next((time_in(one, "start", MILLISECOND) for one in some_objects(message.get("words"))), None)
    stream.put(turn, [Utterance(speaker_name(label), words, at, key=turn)] if words else [])
    if message.get("turn_is_formatted") is not False:  # otherwise it may come again, with its punctuation
        yield from stream.release(turn)


def read_revision(message: Message, stream: Stream) -> Iterator[Heard]:
    """Yield what a revision says of the speakers of turns. Raises :class:`ValueError`."""
    for one in objects(message.get("revisions") or [], "revisions"):
        if (label := one.get("speaker_label")) is not None:
            if not isinstance(order := one.get("turn_order"), int):
                raise ValueError('a revision has no "turn_order"')
            turn = ("turn", stream.session, order)
            stream.relabel(turn, speaker_name(label))
            yield from stream.corrected(turn, speaker=speaker_name(label))


def read_final_transcript(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what a final transcript of the older interface says. Raises :class:`ValueError`."""
    if message.get("message_type") != "FinalTranscript":
        return
    words = text(message, "text", "the transcript")
    if words and stream.is_new("final", str(message.get("audio_start")), words):
        yield Utterance(speaker_name(message.get("speaker")), words, time_in(message, "audio_start", MILLISECOND))


def read_speechmatics(message: Message, stream: Stream) -> Iterator[Heard]:
    """Yield what a message completes. Raises :class:`ValueError` for the server's error, too."""
    kind = message["message"]
    if kind == "Error":
        told = optional_text(message, "reason", "type") or "Error"
        raise ValueError(f"the transcriber reports an error: {told[:200]}")
    if kind == "RecognitionStarted":
        stream.session = str(message.get("id"))
        yield from stream.rest()
    elif kind in ("EndOfUtterance", "EndOfTranscript", "EndOfTurn"):
        yield from stream.rest()
    elif kind == "AddTranscript":
        yield from _transcript(message, stream)
    elif kind == "AddSegment":
        for one in objects(message.get("segments"), "segments"):
            if one.get("is_active") is not False and (words := text(one, "text", "the segment")):
                start = str(inner(one, "metadata").get("start_time"))
                key = ("segment", stream.session, start)
                said = Utterance(speaker_name(one.get("speaker_id")), words, key=key)
                if start != "None" and stream.was_said(key):
                    yield from stream.corrected(key, text=words, speaker=said.speaker)
                elif stream.is_new(*key, words):
                    stream.note(said)
                    yield said


def _transcript(message: Message, stream: Stream) -> Iterator[Utterance]:
    results = objects(message.get("results") or [], "results")
    metadata = inner(message, "metadata")
    words = [*speechmatics_words(results, Source("results"))]
    channel = words[0][0] if words else ""
    name = f"speechmatics {channel}"
    start = metadata.get("start_time")
    start = results[0].get("start_time") if start is None and results else start
    told = optional_text(metadata, "transcript")
    if not stream.is_new("speechmatics", stream.session, channel, str(start), str(metadata.get("end_time")), told):
        return
    for _, word in words:
        if word.joined and name in stream.held_names:
            speaker = stream.last_speaker(name) if word.speaker == UNKNOWN_SPEAKER else word.speaker
            stream.hold(name, [Utterance(speaker, word.text)], blankless=True)
        else:
            stream.hold(name, runs([word]))
    if not words and told:
        stream.hold(name, [Utterance(UNKNOWN_SPEAKER, told)])
    is_end = any(one.get("is_eos") is True for one in results[-1:])
    if is_end or stream.is_long(name):
        yield from stream.release(name)


def read_gladia(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what a final utterance says. Raises :class:`ValueError`."""
    data = inner(message, "data")
    if data.get("is_final") is True:
        yield from _gladia_utterance(inner(data, "utterance"), message, str(data.get("id")), stream)


def is_after_session(message: Message) -> bool:
    """Return whether it comes after the session: the transcript once more, a summary, and the like."""
    return str(message.get("type")).startswith("post_") and isinstance(message.get("data"), dict)


def read_after_session(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what was said in a session of which no final utterance came before. Raises :class:`ValueError`."""
    told = inner(message, "data", "transcription") or inner(message, "data")
    utterances = told.get("utterances")
    if isinstance(utterances, list) and not stream.was_seen(_gladia_session(message)):
        for place, one in enumerate(objects(utterances, "utterances")):
            yield from _gladia_utterance(one, message, str(place), stream)


def _gladia_utterance(utterance: Object, message: Message, name: str, stream: Stream) -> Iterator[Utterance]:
    words = text(utterance, "text", "the utterance")
    if words and stream.is_new("gladia", str(message.get("session_id")), name, words):
        stream.is_new(*_gladia_session(message))
        speaker, channel = utterance.get("speaker"), utterance.get("channel")
        is_channel = speaker is None and isinstance(channel, int)
        yield Utterance(channel_name(channel) if is_channel else speaker_name(speaker), words)


def _gladia_session(message: Message) -> tuple[str, str]:
    return "gladia's", str(message.get("session_id"))
