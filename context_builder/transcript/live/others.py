"""Messages of programs that have no module of their own: bots in meetings, agents, call centres, chats' webhooks.

What is said stands somewhere in them, in fields that many call alike: those of :mod:`formats.turn_fields`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

from context_builder.transcript.formats import turns
from context_builder.transcript.formats.turn import people_of, text_of, turn_of, who_of
from context_builder.transcript.live.stream import Message, Stream
from context_builder.transcript.repeats import words
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Heard, Utterance, speaker_name

_WRAPPERS: Final = (
    "payload",
    "data",
    "message",
    "eventBody",
    "event",
    "body",
    "content",
    "result",
    "transcription_data",
)
_FINAL: Final = ("isfinal", "final", "completed", "endofturn", "definite", "sentenceend")
_INTERIM: Final = ("partial", "interim", "delta", "pending", "llm-text", "tts-text")
_NOTICES: Final = ("error", "warning", "status", "notice", "info")
"""Names of what a program says of itself."""

_RESTATES: Final = ("conversation-update", "report", "history")
"""Kinds of messages that say again what others said."""

_KINDS: Final = ("type", "event", "kind", "transcriptType", "EventType", "topicName", "trigger", "action")
_PARTIES: Final = ("user", "agent", "bot", "assistant", "customer")
_SAYS: Final = ("transcript", "text", "usertranscript", "agentresponse")
"""Where a message in a wrapper says something, if it does not say who."""

_KEYS: Final = ("utteranceid", "segmentid", "absolutestarttime")
_NEARLY: Final = 0.8
_DEEPEST: Final = 4


def is_other(message: Message) -> bool:
    return _is_unfinished(message) or bool(_spoken(message)) or _is_control(message)


def read_other(message: Message, stream: Stream) -> Iterator[Heard]:
    """Yield what a message says; a part that comes again corrects what was said of it."""
    if _is_unfinished(message):
        return
    kinds = _kinds_of(message)
    people = people_of(message)
    may_change = any("mutable" in kind for kind in kinds)
    for place, one in enumerate(_spoken(message)):
        turn = turn_of(one)
        text, who = text_of(turn), who_of(turn, people)
        if _is_interim(turn) or turn.get("role") in ("system", "tool"):
            continue
        said = Utterance(_party(kinds) if who == UNKNOWN_SPEAKER else who, text)
        key = next(((name, str(turn[name])) for name in _KEYS if turn.get(name) is not None), None)
        if key is not None:
            is_complete = turn.get("completed") is True
            end = turn.get("absoluteendtime") if may_change and is_complete else None
            part = _part(("other", *key), said, stream, is_final=not may_change or is_complete)
            yield from part if end is None else _once(("other", *key), str(end), said, part, stream)
        elif _is_alone(message) or stream.is_new("other", place, said.speaker, text):
            yield said


def _once(key: tuple[str, ...], end: str, said: Utterance, part: Iterator[Heard], stream: Stream) -> Iterator[Heard]:
    """Yield a complete part, or what it corrects: one that ended then, where only the beginning is told anew."""
    until = ("other", "until", said.speaker, end)
    if not stream.was_said(key) and _is_nearly(stream.text_of_part(until), said.text):
        stream.drop(key)
        yield from stream.corrected_part(until, said.text)
    else:
        yield from part
        stream.note_part(until, key, said.text)


def _is_nearly(text: str, other: str) -> bool:
    """Return whether two texts are the same, but for a word in five."""
    return SequenceMatcher(None, words(text), words(other), autojunk=False).ratio() >= _NEARLY


def _part(key: tuple[str, ...], said: Utterance, stream: Stream, *, is_final: bool) -> Iterator[Heard]:
    """Yield a part that is complete, or what it says now if it was said; others than the newest are complete."""
    if stream.was_said(key):
        yield from stream.corrected(key, text=said.text, speaker=said.speaker)
        return
    for other in [name for name in stream.held_names if isinstance(name, tuple) and name[0] == "other" and name != key]:
        yield from stream.release(other)
    stream.put(key, [Utterance(said.speaker, said.text, key=key)])
    if is_final:
        yield from stream.release(key)


def _spoken(message: Message) -> Sequence[Mapping[str, Any]]:
    """Return what says something in a message: itself, what is in a wrapper, or a list of turns."""
    inside: Mapping[str, Any] = message
    for _ in range(_DEEPEST):
        name, only = next(iter(inside.items())) if len(inside) == 1 else ("", None)
        if isinstance(only, dict) and name.lower() not in _NOTICES:
            inside = only
            continue
        turn = turn_of(inside)
        if turns.is_list([inside]) or (inside is not message and any(isinstance(turn.get(key), str) for key in _SAYS)):
            return [{**inside, "text": _said(turn)}]
        wrapped = [one for key in _WRAPPERS if isinstance(one := inside.get(key), dict)]
        wrapped += [one for key, one in inside.items() if key.endswith("_event") and isinstance(one, dict)]
        if not wrapped:
            break
        inside = wrapped[0]
    return [one for entries in turns.lists_in(dict(message)) for one in entries if isinstance(one, dict) and _says(one)]


def _is_unfinished(message: Message) -> bool:
    """Return whether a message has what may still change, or what others said."""
    kinds = [*_kinds_of(message), *_names_around(message)]
    is_said = any(word in kind for kind in kinds for word in (*_INTERIM, *_RESTATES))
    inside = [one for key in _WRAPPERS if isinstance(one := message.get(key), dict)]
    return is_said or any(
        _is_interim({key.lower().replace("_", ""): value for key, value in one.items()}) for one in (message, *inside)
    )


def _is_interim(turn: Mapping[str, Any]) -> bool:
    return any(turn.get(key) is False for key in _FINAL) or any(
        turn.get(key) is True for key in ("isinterim", "interim")
    )


def _says(entry: Mapping[str, Any]) -> bool:
    return bool(text_of(turn_of(entry)))


def _said(turn: Mapping[str, Any]) -> str:
    own = next((str(turn[key]) for key in _SAYS if isinstance(turn.get(key), str)), "")
    return text_of(turn) or text_of({"text": own})


def _is_alone(message: Message) -> bool:
    return not [*turns.lists_in(dict(message))]


def _kinds_of(message: Message) -> list[str]:
    inside = [one for key in _WRAPPERS if isinstance(one := message.get(key), dict)]
    return [str(one[key]).lower() for one in (message, *inside) for key in _KINDS if isinstance(one.get(key), str)]


def _names_around(message: Message) -> Iterator[str]:
    """Yield the names of objects that hold nothing but another one, as a kind of message: ``{"partial": {…}}``."""
    inside: Any = message
    while isinstance(inside, dict) and len(inside) == 1:
        name, inside = next(iter(inside.items()))
        if isinstance(inside, dict):
            yield name.lower()


def _party(kinds: Sequence[str]) -> str:
    """Return who says what a kind of messages says."""
    found = next((one for kind in kinds for one in _PARTIES if kind.startswith(one)), None)
    return UNKNOWN_SPEAKER if found is None else speaker_name(found)


def _is_control(message: Message) -> bool:
    """Return whether a message tells its kind, and nothing that could be said: no text of several words."""
    is_wrapper = len(message) == 1 and isinstance(next(iter(message.values())), dict)
    tells_kind = is_wrapper or any(isinstance(message.get(key), str) for key in _KINDS)
    return tells_kind and not _has_words(message, 0)


def _has_words(value: object, depth: int) -> bool:
    if isinstance(value, str):
        return " " in value.strip()
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth > _DEEPEST or any(_has_words(one, depth + 1) for one in inside)
