"""Deepgram: ``Results``, whose utterance ends with ``speech_final``, and Flux' ``TurnInfo``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from context_builder.transcript.fields import inner, objects, text
from context_builder.transcript.formats.deepgram import speaker_of, words_of
from context_builder.transcript.live.stream import Message, Stream, time_in
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Heard, Utterance
from context_builder.transcript.word_runs import runs


def read_results(message: Message, stream: Stream) -> Iterator[Heard]:
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
            part, place, [*_said(alternatives[0], place if channels > 1 else None, time_in(message, "start"))]
        )
    if message.get("speech_final") is True or message.get("from_finalize") is True or stream.is_long(place):
        yield from stream.release(place)


def read_flux(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what a turn of Flux says when it ends."""
    turn = ("flux", str(message.get("request_id")), str(message.get("turn_index")))
    ended = message.get("event") == "EndOfTurn"
    if ended and (words := text(message, "transcript", "the turn")) and stream.is_new(*turn):
        yield Utterance(UNKNOWN_SPEAKER, words)


def _said(alternative: Message, channel: int | None, start: float | None) -> Iterator[Utterance]:
    """Yield what an alternative says, by speaker where words have some; else by channel where there are several."""
    listed = objects(alternative.get("words") or [], "words")
    if any(word.get("speaker") is not None for word in listed):
        yield from runs(words_of(listed, "words", Source("words"), channel))
    elif said := text(alternative, "transcript", "the alternative"):
        first = time_in(listed[0], "start") if listed else None
        yield Utterance(speaker_of(channel, None), said, start if first is None else first)


def _channel(index: Any) -> tuple[int, int]:
    """Return which channel it is, of how many."""
    match index:
        case [int(place), int(count)]:
            return place, count
    return 0, 1
