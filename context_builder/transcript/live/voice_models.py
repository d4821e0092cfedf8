"""Models that listen and talk: what they heard, and what they say.

* OpenAI's Realtime interface: transcriptions come in any order, also after the answer, so that each waits for those of
  what was spoken before (https://platform.openai.com/docs/api-reference/realtime-server-events)
* Gemini Live: what it heard and what it says come in fragments, until a turn is complete or the other one speaks
  (https://ai.google.dev/api/live#BidiGenerateContentServerContent)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from context_builder.transcript.fields import Object, inner, objects, optional_text, text
from context_builder.transcript.live.stream import Message, Stream, time_in
from context_builder.transcript.utterance import ASSISTANT, Utterance, speaker_name

_HEARD: Final = "conversation.item.input_audio_transcription."
_ADDED: Final = frozenset({"conversation.item.created", "conversation.item.added", "conversation.item.done"})
_ANSWERED: Final = frozenset(
    {
        "response.output_audio_transcript.done",
        "response.audio_transcript.done",  # of the interface before its general availability
        "response.output_text.done",
        "response.text.done",
    }
)


def is_realtime(kind: object) -> bool:
    """Return whether a message is of this interface, by its type."""
    begins = ("conversation.", "response.", "input_audio_buffer.", "output_audio_buffer.", "session.", "rate_limits.")
    return isinstance(kind, str) and kind.startswith((*begins, "transcription_session.", "transcript.text."))


def read_realtime(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what an event completes. Raises :class:`ValueError`."""
    kind, item = str(message["type"]), str(message.get("item_id"))
    if kind.startswith(_HEARD):
        yield from _heard(kind.removeprefix(_HEARD), item, message, stream)
    elif kind == "input_audio_buffer.committed":
        stream.awaits(item)
    elif kind in _ANSWERED:
        words = text(message, "transcript" if "transcript" in message else "text", "the answer")
        if words and stream.is_new("answer", item, str(message.get("content_index"))):
            answer = Utterance(ASSISTANT, words, contribution={})
            yield from stream.place(f"{item} {message.get('content_index')}", [answer])
    elif kind in _ADDED:
        yield from _typed(inner(message, "item"), stream)
    elif kind == "transcript.text.segment":
        if (words := text(message, "text", "the segment")) and stream.is_new(
            "text segment", str(message.get("id")), words
        ):
            stream.tells_segments = True
            yield Utterance(speaker_name(message.get("speaker")), words, time_in(message, "start"))
    elif kind == "transcript.text.done" and not stream.tells_segments and (words := text(message, "text", "the text")):
        yield Utterance(speaker_name(None), words)


def _heard(what: str, item: str, message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what a transcription of the input completes; ``segment`` tells speakers apart."""
    if what == "segment":
        words = text(message, "text", "the segment")
        if words and stream.is_new("segment", str(message.get("id")), item, words):
            stream.is_new("told by segments", item)
            yield Utterance(speaker_name(message.get("speaker")), words)
    elif what in ("completed", "failed"):
        said: list[Utterance] = []
        if what == "completed" and not stream.was_seen(("told by segments", item)):
            words = text(message, "transcript", "the transcription")
            if words and stream.is_new("heard", item, str(message.get("content_index"))):
                said = [Utterance(speaker_name(message.get("speaker")), words)]
        yield from stream.place(item, said)


def _typed(item: Object, stream: Stream) -> Iterator[Utterance]:
    """Yield what somebody typed; what was spoken comes by its transcription."""
    if item.get("type") != "message" or item.get("role") != "user":
        return
    for place, part in enumerate(objects(item.get("content") or [], "content")):
        words = optional_text(part, "text") if part.get("type") in ("input_text", "text") else ""
        if words and stream.is_new("typed", str(item.get("id")), place):
            yield Utterance(speaker_name(None), words)


_SIDES: Final = {"inputTranscription": "user", "outputTranscription": "model"}
_TURN_ENDS: Final = ("turnComplete", "generationComplete", "interrupted")


def is_gemini(message: Message) -> bool:
    return "serverContent" in message or "setupComplete" in message


def read_gemini(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what a message completes."""
    content = inner(message, "serverContent")
    for field, who in _SIDES.items():
        if isinstance(text := inner(content, field).get("text"), str) and text:
            for other in _SIDES.values():
                if other != who:
                    yield from _complete(other, stream)
            stream.hold(f"gemini {who}", [Utterance(who, text)], blankless=True)
    if any(content.get(key) is True for key in _TURN_ENDS):
        for who in _SIDES.values():
            yield from _complete(who, stream)


def _complete(who: str, stream: Stream) -> Iterator[Utterance]:
    for one in stream.release(f"gemini {who}"):
        if words := " ".join(one.text.split()):
            yield Utterance(one.speaker, words)
