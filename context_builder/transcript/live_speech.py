"""What transcribers send while people talk, message by message: only what is final becomes an utterance, each once.

As their documentation has them: Deepgram (``Results``, an utterance ends with ``speech_final``; Flux' ``TurnInfo``),
AssemblyAI's streaming (``Turn``, with ``end_of_turn``), WhisperLive and its like (``segments``, of which ``completed``
ones come again and again), and plain objects with a ``text``. Which it is, each message shows by itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from context_builder.transcript.fields import objects, text
from context_builder.transcript.speech_json import by_speaker, speaker_name
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Utterance

REMEMBERED: Final = 10_000
"""Final messages by which one that comes again is known."""

LONGEST_HELD: Final = 1_000
"""Characters of an utterance that is said without an end of it in sight."""

LONGEST_REASON: Final = 200

Message = Mapping[str, Any]

_CONTROL: Final = frozenset(
    {"Connected", "Heartbeat", "KeepAlive", "Metadata", "SpeechStarted", "SpeakerRevision", "Termination", "Warning"}
)
"""Types of messages that tell nothing anybody said."""

_INTERIM: Final = frozenset({"partial", "interim"})


class LiveSpeech:
    """Reads the messages of one stream, which goes on over several connections.

    What may still be joined with what follows is held back: see :meth:`rest`.
    """

    def __init__(self) -> None:
        self._stream = ""
        self._held: dict[Hashable, list[Utterance]] = {}
        self._seen: OrderedDict[Hashable, None] = OrderedDict()

    @property
    def holds(self) -> bool:
        """Return whether something is held back."""
        return bool(self._held)

    def rest(self) -> list[Utterance]:
        """Return what was held back: when a stream ends, or nothing has come for a while."""
        return [one for name in [*self._held] for one in self._release(name)]

    def read(self, raw: str | bytes) -> list[Utterance]:
        """Return what a message completes. Raises :class:`ValueError` with what is wrong, free of what was said."""
        try:
            message = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise ValueError(f"not JSON: {error.msg} at character {error.pos}") from None
        if not isinstance(message, dict):
            raise ValueError("not a JSON object")
        return [*self._read(message)]

    def _read(self, message: Message) -> Iterable[Utterance]:
        kind = message.get("type")
        if kind == "Results":
            return self._deepgram(message)
        if kind == "Turn":
            return self._assemblyai(message)
        if kind == "TurnInfo":
            return self._flux(message)
        if kind == "UtteranceEnd":
            return self.rest()
        if kind == "Begin":  # of a session, whose turns count from zero
            self._stream = str(message.get("id"))
            return self.rest()
        if reason := message.get("error") or (kind in {"Error", "error"} and message.get("description")):
            told = reason if isinstance(reason, str) else str(kind)
            raise ValueError(f"the transcriber reports an error: {told[:LONGEST_REASON]}")
        if "segments" in message:
            return [*self._segments(message)]
        if isinstance(message.get("text"), str) and kind not in _INTERIM:
            return [*self._plain(message, str(message.get("uid") or ""))]
        if kind in _CONTROL or kind in _INTERIM or "uid" in message:
            return ()
        raise ValueError("not a message as Deepgram, AssemblyAI and Whisper's servers send it while people talk")

    def _deepgram(self, message: Message) -> Iterator[Utterance]:
        if message.get("is_final") is not True:
            return
        channel = message.get("channel")
        if not isinstance(channel, dict):
            raise ValueError("channel is not an object")
        alternatives = objects(channel.get("alternatives"), "channel.alternatives")
        metadata = message.get("metadata")
        request = metadata.get("request_id") if isinstance(metadata, dict) else None
        place, channels = _channel(message.get("channel_index"))
        new = self._is_new("deepgram", str(request), place, str(message.get("start")), _transcript(alternatives))
        if alternatives and new:
            self._hold(place, _deepgram_said(alternatives[0], place if channels > 1 else None))
        held = self._held.get(place, [])
        if message.get("speech_final") is True or sum(len(one.text) for one in held) > LONGEST_HELD:
            yield from self._release(place)

    def _flux(self, message: Message) -> Iterator[Utterance]:
        turn = ("flux", str(message.get("request_id")), str(message.get("turn_index")))
        ended = message.get("event") == "EndOfTurn"
        if ended and (words := text(message, "transcript", "the turn")) and self._is_new(*turn):
            yield Utterance(UNKNOWN_SPEAKER, words)

    def _assemblyai(self, message: Message) -> Iterator[Utterance]:
        order = message.get("turn_order")
        if isinstance(order, bool) or not isinstance(order, int):
            raise ValueError('a turn has no "turn_order"')
        turn = ("turn", self._stream, order)
        for other in [name for name in self._held if isinstance(name, tuple) and name != turn]:
            yield from self._release(other)  # nothing better will come of these
        if message.get("end_of_turn") is not True or turn in self._seen:
            return
        words = text(message, "transcript", "the turn")
        label = message.get("speaker_label", message.get("speaker"))
        self._held[turn] = [Utterance(speaker_name(label), words)] if words else []
        if message.get("turn_is_formatted") is not False:  # otherwise it may come again, with its punctuation
            yield from self._release(turn)

    def _segments(self, message: Message) -> Iterator[Utterance]:
        segments = objects(message["segments"], "segments")
        tells = any("completed" in one for one in segments)
        final = [one for one in segments if one.get("completed") is True] if tells else segments[:-1]
        for one in final:
            yield from self._plain(one, str(message.get("uid") or ""))

    def _plain(self, message: Message, stream: str) -> Iterator[Utterance]:
        if any(message.get(key) is False for key in ("is_final", "final", "completed")):
            return
        if words := text(message, "text", "the segment"):
            start, speaker = message.get("start"), speaker_name(message.get("speaker"))
            if start is None or self._is_new("segment", stream, str(start), speaker, words):
                yield Utterance(speaker, words)

    def _hold(self, place: Hashable, utterances: Iterable[Utterance]) -> None:
        """Hold utterances back, joined with what the same speaker said directly before."""
        held = self._held.setdefault(place, [])
        for one in utterances:
            if held and held[-1].speaker == one.speaker:
                held[-1] = replace(held[-1], text=f"{held[-1].text} {one.text}")
            else:
                held.append(one)
        if not held:
            del self._held[place]

    def _release(self, name: Hashable) -> list[Utterance]:
        """Return what is held back under a name; a turn is not said again."""
        if isinstance(name, tuple):
            self._is_new(*name)
        return self._held.pop(name, [])

    def _is_new(self, *name: Hashable) -> bool:
        """Return whether no message of this name came before, and remember it."""
        if name in self._seen:
            return False
        self._seen[name] = None
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return True


def _deepgram_said(alternative: Message, channel: int | None) -> Iterator[Utterance]:
    """Yield what an alternative says, by speaker where words have some; else by channel where there are several."""
    words = objects(alternative.get("words", []), "words")
    if any(word.get("speaker") is not None for word in words):
        yield from by_speaker(words, "words")
    elif said := text(alternative, "transcript", "the alternative"):
        yield Utterance(UNKNOWN_SPEAKER if channel is None else f"Channel {channel}", said)


def _channel(index: object) -> tuple[int, int]:
    """Return which channel it is, of how many."""
    match index:
        case [int(place), int(count)]:
            return place, count
    return 0, 1


def _transcript(alternatives: Any) -> str:
    return str(alternatives[0].get("transcript")) if alternatives else ""
