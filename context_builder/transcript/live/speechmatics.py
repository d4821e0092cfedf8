"""Speechmatics: ``AddTranscript`` with words and punctuation, joined until an utterance ends; and ``AddSegment``.

https://docs.speechmatics.com/api-ref/realtime-transcription-websocket
"""

from __future__ import annotations

from collections.abc import Iterator

from context_builder.transcript.fields import inner, objects, optional_text, text
from context_builder.transcript.formats.speechmatics import words_of
from context_builder.transcript.live.stream import Message, Stream
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Heard, Utterance, speaker_name
from context_builder.transcript.word_runs import runs


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
    words = [*words_of(results, "results", Source("results"))]
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
