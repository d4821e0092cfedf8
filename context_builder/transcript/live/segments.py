"""WhisperLive and its like: ``segments``, of which ``completed`` ones come again and again; and plain objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from context_builder.transcript.fields import number, objects, optional_text, plain, text
from context_builder.transcript.formats.turn import turn_of, who_of
from context_builder.transcript.live.stream import Message, Stream
from context_builder.transcript.repeats import is_later_state
from context_builder.transcript.utterance import Heard, Utterance

_TEXT: Final = ("text", "transcript", "content", "utterance", "message")
_WHO: Final = (
    "speaker",
    "speaker_name",
    "speakerName",
    "speaker_label",
    "speaker_id",
    "name",
    "participant",
    "user",
    "from",
)
"""How programs of one's own call what was said, and who says it."""

_FINAL: Final = ("completed", "final", "is_final", "isFinal")
_INTERIM: Final = ("is_interim", "isInterim", "interim")
_RAW: Final = ("rawResponse", "raw_response", "rawData")
"""Where programs pass on what a transcriber told them (Daily, Pipecat), which says whether it is final."""

_PARTS: Final = ("chunk_id", "utterance_id", "segment_id", "utteranceId", "segmentId")
"""What names a part of what is said that may come again, with more words."""


_NAMES: Final = ("id", "captionId", "caption_id", "messageId", "message_id")
"""What may name a caption that comes each time it grows."""

_OF_SPEAKERS: Final = ("ids are those of speakers",)

_ACTIVITIES: Final = ("message", "messageUpdate")
"""Types of the Bot Framework's activities that say something, or say it again in other words."""


def is_plain(message: Message) -> bool:
    """Return whether an object tells what was said; what may be a notice does if it tells who says it."""
    told = any(isinstance(message.get(key), int | str | dict) for key in _WHO)
    return any(isinstance(message.get(key), str) for key in (_TEXT if told else _TEXT[:1]))


def read_segments(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what is new of the segments that are complete. Raises :class:`ValueError`."""
    segments = objects(message["segments"], "segments")
    tells = any(key in one for one in segments for key in _FINAL)
    final = [one for one in segments if any(one.get(key) is True for key in _FINAL)] if tells else segments[:-1]
    who = message.get("participant_identity", message.get("participantIdentity"))
    for one in final:
        yield from _said(one if who is None else {"speaker": who, **one}, str(message.get("uid") or ""), stream)


def is_lines(message: Message) -> bool:
    """Return whether it is of WhisperLiveKit: all lines so far, of which the last one still grows, or what changed."""
    return isinstance(message.get("lines"), list) or message.get("type") in ("ready_to_stop", "diff")


def read_lines(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield the lines that are complete. Raises :class:`ValueError`."""
    if message.get("type") == "ready_to_stop":
        yield from stream.release("lines")
        return
    lines = [one for one in _all_lines(message, stream) if optional_text(one, "text")]
    for one in lines[:-1]:
        if stream.is_new("line", str(one.get("start"))):
            yield Utterance(_speaker(one), optional_text(one, "text"))
    if lines and not stream.was_seen(("line", str(lines[-1].get("start")))):
        stream.put("lines", [Utterance(_speaker(lines[-1]), optional_text(lines[-1], "text"))])


def is_conversation(message: Message) -> bool:
    """Return whether it is of a call with an agent of Retell: all turns so far, of which the last one still grows."""
    return isinstance(message.get("interaction_type"), str)


def read_conversation(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield the turns that are complete. Raises :class:`ValueError`."""
    said = objects(message.get("transcript") or [], "transcript")
    turns_so_far = [Utterance(_speaker(one), words) for one in said if (words := optional_text(one, "content", "text"))]
    for place, one in enumerate(turns_so_far):
        if place < len(turns_so_far) - 1:
            if stream.is_new("turn", place):
                yield one
        elif not stream.was_seen(("turn", place)):
            stream.put("turn", [one])


def _all_lines(message: Message, stream: Stream) -> Sequence[Message]:
    """Return all lines, with those that a change leaves out from now on. Raises :class:`ValueError`."""
    if message.get("type") != "diff":
        stream.lines = list(objects(message["lines"], "lines"))
        return stream.lines
    new = list(objects(message.get("new_lines") or [], "new_lines"))
    pruned, count = (int(number(message, key, "the change") or 0) for key in ("lines_pruned", "n_lines"))
    lines = [*stream.lines[: max(0, pruned + count - len(new))], *new]
    stream.lines = lines[max(0, pruned) :]
    return lines


def read_plain(message: Message, stream: Stream) -> Iterator[Heard]:
    """Yield what an object with a text says, if it is final. Raises :class:`ValueError`."""
    is_activity = message.get("type") in _ACTIVITIES and isinstance(message.get("from"), dict)
    names = (*_PARTS, "id") if is_activity else _PARTS
    part = next((message[key] for key in names if isinstance(message.get(key), str | int)), None)
    name = next((message[key] for key in _NAMES if isinstance(message.get(key), str | int)), None)
    if part is None and name is not None and "start" not in message and not _is_interim(message):
        yield from _named(("name", name), message, stream)
    elif part is None:
        yield from _said(message, str(message.get("uid") or ""), stream)
    elif not _is_interim(message) and (words := optional_text(message, *_TEXT)):
        yield from stream.said_or_corrected(("part", part), Utterance(_speaker(message), words))


def _named(key: tuple[str, object], message: Message, stream: Stream) -> Iterator[Heard]:
    """Yield what a message with an id says, or how what was said under it goes on; ids may be those of speakers."""
    if not (words := optional_text(message, *_TEXT)):
        return
    said, before = Utterance(_speaker(message), words), stream.newest(key)
    if before is not None and before.speaker == said.speaker and not stream.was_seen(_OF_SPEAKERS):
        if is_later_state(before.text, words):
            yield from stream.corrected(key, text=words)
            return
        stream.is_new(*_OF_SPEAKERS)
    named = replace(said, key=key)
    stream.note(named)
    yield named


def is_ordinal(message: Message) -> bool:
    """Return whether it is of an utterance that comes as deltas, or as all of it so far, until final (Ultravox)."""
    is_told = isinstance(message.get("text"), str) or isinstance(message.get("delta"), str)
    return message.get("type") == "transcript" and isinstance(message.get("ordinal"), int) and is_told


def read_ordinal(message: Message, stream: Stream) -> Iterator[Heard]:
    """Yield an utterance that is final: https://docs.ultravox.ai/apps/datamessages."""
    key = ("ordinal", message["ordinal"])
    if isinstance(text := message.get("text"), str):
        words = text
    else:
        before = stream.newest(key)
        words = (before.text if before else "") + str(message.get("delta"))
    said = Utterance(_speaker({"role": message.get("role")}), words, key=key)
    if message.get("final") is not True:
        stream.put(key, [said])
        return
    said = replace(said, text=plain(words))
    if stream.was_said(key):
        stream.drop(key)
        yield from stream.corrected(key, text=said.text)
    elif said.text:
        stream.put(key, [said])
        yield from stream.release(key)


def _is_interim(message: Message) -> bool:
    if any(isinstance(inside := message.get(key), dict) and _is_interim(inside) for key in _RAW):
        return True
    told = [message.get(key) for key in _INTERIM]
    return any(message.get(key) is False for key in _FINAL) or any(one is True for one in told)


def _said(message: Message, name: str, stream: Stream) -> Iterator[Utterance]:
    if _is_interim(message):
        return
    if words := optional_text(message, *_TEXT) if is_plain(message) else text(message, "text", "the segment"):
        said = Utterance(
            _speaker(message), words, _time(message, "start", "start_time"), until=_time(message, "end", "end_time")
        )
        if (new := stream.unsaid(name, said)) is not None:
            yield new


def _speaker(message: Message) -> str:
    return who_of(turn_of({key: value for key, value in message.items() if key != "message"}))


def _time(message: Message, *keys: str) -> float | None:
    key = next((one for one in keys if message.get(one) is not None), keys[0])
    try:
        return number(message, key, "the segment")
    except ValueError:
        return None
