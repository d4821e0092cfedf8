"""Services that say of each text whether it is final, and do not take it back: Google, Amazon, Azure, Rev, and others.

Each sends hypotheses, which are not read, and then what they became. Soniox sends final tokens as they come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from context_builder.transcript.fields import Object, first_object, inner, objects, optional_text, parse, seconds
from context_builder.transcript.formats.google_speech import best, words_of
from context_builder.transcript.live.stream import MILLISECOND, Message, Stream, time_in
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Utterance, channel_name, speaker_name
from context_builder.transcript.word_runs import SpokenWord, runs

_COMMITTED: Final = ("committed_transcript", "committed_transcript_with_timestamps")
_ELEVENLABS: Final = frozenset({"session_started", "partial_transcript", *_COMMITTED})
_ENDS: Final = ("<end>", "<fin>")
"""Tokens of Soniox that say that a turn has ended."""

_TICK: Final = 1e-7
"""Seconds of a unit in which Azure tells times."""


def is_google(message: Message) -> bool:
    return isinstance(message.get("results"), list) or "speechEventType" in message or [*message] == ["state"]


def read_google(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what the final results of a streamed response say, also Riva's and Watson's. Raises :class:`ValueError`."""
    for one in objects(message.get("results") or [], "results"):
        if not any(one.get(key) is True for key in ("isFinal", "is_final", "final")):
            continue
        text = optional_text(best(one), "transcript")
        end = one.get("resultEndTime", one.get("resultEndOffset"))
        channel = one.get("channelTag")
        if text and stream.is_new("google", str(channel), str(end or message.get("result_index")), text):
            who = channel_name(channel) if channel else UNKNOWN_SPEAKER
            words = words_of(best(one), who)
            yield from _by_speakers(words, Utterance(who, text, words[0].at if words else None))


def is_amazon(message: Message) -> bool:
    return "Results" in inner(inner(message, "TranscriptEvent") or message, "Transcript")


def read_amazon(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what the results of Amazon Transcribe say that are not partial. Raises :class:`ValueError`."""
    event = inner(message, "TranscriptEvent") or message
    for one in objects(inner(event, "Transcript").get("Results") or [], "Results"):
        alternatives = objects(one.get("Alternatives") or [], "Alternatives")
        text = optional_text(alternatives[0], "Transcript") if alternatives else ""
        if one.get("IsPartial") is not False or not text or not stream.is_new("amazon", str(one.get("ResultId"))):
            continue
        channel = optional_text(one, "ChannelId")
        who = channel_name(channel.removeprefix("ch_")) if channel else UNKNOWN_SPEAKER
        whole = Utterance(who, text, time_in(one, "StartTime"))
        yield from _by_speakers([*_amazons_words(alternatives[0], who)], whole)


def _amazons_words(alternative: Object, who: str) -> Iterator[SpokenWord]:
    last = who
    for one in objects(alternative.get("Items") or [], "Items"):
        if content := optional_text(one, "Content"):
            label = one.get("Speaker")
            last = last if label is None else speaker_name(label)
            yield SpokenWord(content, last, time_in(one, "StartTime"), joined=one.get("Type") == "punctuation")


def _by_speakers(words: Sequence[SpokenWord], whole: Utterance) -> Iterator[Utterance]:
    """Yield what each speaker says of it, where words tell; else the whole as it is written."""
    speakers = {word.speaker for word in words}
    yield from runs(words) if speakers - {whole.speaker} else [whole]


def is_azure(message: Message) -> bool:
    """Return whether it is a phrase of Azure's, or a hypothesis, which has no status."""
    return "RecognitionStatus" in message or (
        {"Text", "Offset"} <= message.keys() and all(key[:1].isupper() for key in message)
    )


def read_azure(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what a phrase of Azure's says that was recognized."""
    text = optional_text(message, "DisplayText") or optional_text(
        first_object(message.get("NBest")), "Display", "Lexical"
    )
    name = ("azure", str(message.get("Channel")), str(message.get("Offset")), str(message.get("Id")))
    if message.get("RecognitionStatus") in ("Success", 0) and text and stream.is_new(*name):
        yield Utterance(speaker_name(message.get("SpeakerId")), text, time_in(message, "Offset", _TICK))


def is_rev(message: Message) -> bool:
    return message.get("type") in ("partial", "final") and isinstance(message.get("elements"), list)


def read_rev(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what a final hypothesis of Rev's says. Raises :class:`ValueError`."""
    if message["type"] == "final":
        parts = [str(one.get("value") or "") for one in objects(message["elements"], "elements")]
        text = " ".join("".join(parts).split())
        if text and stream.is_new("rev", str(message.get("ts")), str(message.get("end_ts")), text):
            yield Utterance(speaker_name(message.get("speaker_id")), text, time_in(message, "ts"))


def is_elevenlabs(message: Message) -> bool:
    return str(message.get("message_type")) in _ELEVENLABS


def read_elevenlabs(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what a committed transcript says; with its words' times it comes once more."""
    kind, text = message.get("message_type"), optional_text(message, "text")
    if kind in _COMMITTED and text and not (kind == _COMMITTED[1] and text == stream.committed):
        yield Utterance(UNKNOWN_SPEAKER, text)
    if kind in _COMMITTED:
        stream.committed = text if kind == _COMMITTED[0] else ""


def is_soniox(message: Message) -> bool:
    return isinstance(message.get("tokens"), list)


def read_soniox(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what ends with the final tokens of a message; others may change. Raises :class:`ValueError`."""
    final = [one for one in objects(message["tokens"], "tokens") if one.get("is_final") is True]
    said = [one for one in final if one.get("translation_status") != "translation"]
    for speaker, tokens in groupby(said, key=lambda one: one.get("speaker")):
        listed = [*tokens]
        texts = [str(one.get("text") or "") for one in listed]
        at = time_in(listed[0], "start_ms", MILLISECOND)
        ends = any(text in _ENDS for text in texts)
        text, who = "".join(text for text in texts if text not in _ENDS), speaker_name(speaker)
        if "soniox" not in stream.held_names or stream.last_speaker("soniox") != who:
            text = text.lstrip()
        if text:
            stream.hold("soniox", [Utterance(who, text, at)], blankless=True)
        if ends or stream.is_long("soniox"):
            yield from stream.release("soniox")
    if message.get("finished") is True:
        yield from stream.release("soniox")


def is_recall(message: Message) -> bool:
    event = str(message.get("event") or "")
    return event.startswith(("transcript.", "participant_events.")) and isinstance(message.get("data"), dict)


def read_recall(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what a finished transcript of Recall.ai says, or a message in the meeting's chat, by the participants.

    Raises :class:`ValueError`.
    """
    event, data = message["event"], inner(message, "data", "data")
    if event == "transcript.data":
        words = objects(data.get("words") or [], "words")
        text = " ".join(part for one in words if (part := optional_text(one, "text")))
        first = inner(words[0], "start_timestamp") if words else {}
    elif event == "participant_events.chat_message":
        text, first = optional_text(inner(data, "data"), "text"), inner(data, "timestamp")
    else:
        return
    person = inner(data, "participant")
    begun = seconds(first, "relative", "what is said", Source("words"))
    key = ("recall", str(person.get("id")), begun, text)
    if text and (begun is None or stream.is_new(*key)):
        yield Utterance(speaker_name(optional_text(person, "name") or person.get("id")), text, begun)


def is_call(message: Message) -> bool:
    """Return whether it is of a call: Azure's Communication Services, Twilio, or Zoom's real-time media."""
    return (
        message.get("kind") in ("TranscriptionData", "TranscriptionMetadata")
        or "TranscriptionEvent" in message
        or isinstance(message.get("msg_type"), int)
    )


def read_call(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what a participant of a call says. Raises :class:`ValueError`."""
    azure, zoom = inner(message, "transcriptionData"), inner(message, "content")
    if azure.get("resultStatus") == "Final" and (text := optional_text(azure, "text")):
        if stream.is_new("call", str(azure.get("offset")), text):
            yield Utterance(speaker_name(azure.get("participantRawID")), text)
    elif message.get("TranscriptionEvent") == "transcription-content" and str(message.get("Final")).lower() == "true":
        told = message.get("TranscriptionData")
        data = parse(told) if isinstance(told, str) else told
        text = optional_text(data, "transcript") if isinstance(data, dict) else ""
        if text and stream.is_new("call", str(message.get("SequenceId")), str(message.get("Track")), text):
            yield Utterance(speaker_name(str(message.get("Track") or "").removesuffix("_track")), text)
    elif text := optional_text(zoom, "data"):
        yield Utterance(speaker_name(optional_text(zoom, "user_name") or zoom.get("user_id")), text)
