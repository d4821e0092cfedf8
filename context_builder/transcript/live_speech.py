"""What transcribers send while people talk, message by message: only what is final becomes an utterance, each once.

Which service a message is of, it shows by itself.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import orjson

from context_builder.transcript.fields import is_json, parse
from context_builder.transcript.live import (
    chats,
    finals,
    nested,
    others,
    plain_lines,
    revised,
    segments,
    voice_models,
)
from context_builder.transcript.live.stream import LONGEST_HELD, Message, Stream
from context_builder.transcript.utterance import Heard, Utterance

__all__ = ["LONGEST_HELD", "LiveSpeech"]

LONGEST_REASON: Final = 200

_CONTROL: Final = frozenset(
    {"Connected", "connected", "Heartbeat", "KeepAlive", "Metadata", "SpeechStarted", "Termination", "Warning"}
)
"""Types of messages that tell nothing anybody said."""

_INTERIM: Final = frozenset({"partial", "interim", "realtime"})


@dataclass(frozen=True, slots=True)
class Service:
    """A service: ``matches`` tells whether a message is one of its, ``read`` returns what the message completes.

    ``in_files`` says that lines of a file are recognized by it, too; the formats of files have others of their own.
    """

    name: str
    matches: Callable[[Message], bool]
    read: Callable[[Message, Stream], Iterable[Heard]]
    in_files: bool = True


SERVICES: Final = (
    Service("Deepgram", lambda message: message.get("type") == "Results", revised.read_deepgram),
    Service("Deepgram", lambda message: message.get("type") == "UtteranceEnd", lambda _, stream: stream.rest()),
    Service("Deepgram's Flux", lambda message: message.get("type") == "TurnInfo", revised.read_flux),
    Service("AssemblyAI", lambda message: message.get("type") == "Turn", revised.read_turn),
    Service("AssemblyAI", lambda message: message.get("type") == "SpeakerRevision", revised.read_revision),
    Service("AssemblyAI", lambda message: message.get("type") == "Begin", revised.begin_turns),
    Service("ElevenLabs", finals.is_elevenlabs, finals.read_elevenlabs),
    Service("AssemblyAI", lambda message: isinstance(message.get("message_type"), str), revised.read_final_transcript),
    Service("a service with a wrapper", nested.is_nested, nested.read_nested, in_files=False),
    Service("Yandex", nested.is_yandex, nested.read_yandex, in_files=False),
    Service("Retell", segments.is_conversation, segments.read_conversation, in_files=False),
    Service("Rev", finals.is_rev, finals.read_rev),
    Service("Amazon Transcribe", finals.is_amazon, finals.read_amazon),
    Service("Azure", finals.is_azure, finals.read_azure),
    Service("a call", finals.is_call, finals.read_call, in_files=False),
    Service("WhisperLiveKit", segments.is_lines, segments.read_lines, in_files=False),
    Service("Soniox", finals.is_soniox, finals.read_soniox, in_files=False),
    Service("Discord", chats.is_discord, chats.read_discord, in_files=False),
    Service("Telegram", chats.is_telegram, chats.read_telegram, in_files=False),
    Service("Zulip", chats.is_zulips_edit, chats.read_zulips_edit),
    Service(
        "another chat",
        lambda message: chats.messenger_message(message) is not None,
        chats.read_messenger,
        in_files=False,
    ),
    Service("Recall.ai", finals.is_recall, finals.read_recall),
    Service("Slack", chats.is_slack, chats.read_slack, in_files=False),
    Service("Matrix", chats.is_matrix, chats.read_matrix, in_files=False),
    Service("Speechmatics", lambda message: _is_speechmatics(message), revised.read_speechmatics),
    Service("Gemini Live", voice_models.is_gemini, voice_models.read_gemini),
    Service("Google", finals.is_google, finals.read_google),
)
"""Before what any service may report as an error."""

OTHERS: Final = (
    Service(
        "OpenAI's Realtime",
        lambda message: voice_models.is_realtime(message.get("type")),
        voice_models.read_realtime,
    ),
    Service("Whisper's servers", lambda message: "segments" in message, segments.read_segments, in_files=False),
    Service("Gladia", lambda message: message.get("type") == "transcript" and "data" in message, revised.read_gladia),
    Service("Gladia", revised.is_after_session, revised.read_after_session),
    Service("Ultravox", segments.is_ordinal, segments.read_ordinal),
    Service("plain", lambda message: _is_plain(message), segments.read_plain, in_files=False),
    Service("another program", others.is_other, others.read_other, in_files=False),
)


def is_of_service(raw: str) -> bool:
    """Return whether a line is a message of a transcriber that has a form of its own."""
    try:
        message = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return False
    if isinstance(message, dict) and "final_audio_proc_ms" in message and finals.is_soniox(message):
        return True
    return isinstance(message, dict) and any(one.in_files and one.matches(message) for one in (*SERVICES, *OTHERS))


class LiveSpeech:
    """Reads the messages of one stream, which goes on over several connections.

    What may still be joined with what follows is held back: see :meth:`rest`.
    """

    def __init__(self) -> None:
        self._stream = Stream()
        self._lines = plain_lines.PlainLines()

    @property
    def holds(self) -> bool:
        """Return whether something is held back."""
        return self._stream.holds

    def rest(self) -> list[Utterance]:
        """Return what was held back: when a stream ends, or nothing has come for a while."""
        return self._stream.rest()

    def read(self, raw: str | bytes) -> list[Heard]:
        """Return what a message completes or corrects. Raises :class:`ValueError`, free of what was said."""
        try:
            return self._heard(raw)
        except OverflowError:
            raise ValueError("a number is too large") from None

    def _heard(self, raw: str | bytes) -> list[Heard]:
        raw = raw.removeprefix(codecs.BOM_UTF8) if isinstance(raw, bytes) else raw.removeprefix("\ufeff")
        try:
            message = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            return self._read_line(raw, f"not JSON: {error.msg} at character {error.pos}")
        if isinstance(message, dict):
            return [*self._read(message)]
        if isinstance(message, list) and any(isinstance(one, dict) for one in message):
            return [heard for one in message if isinstance(one, dict) for heard in self._read(one)]
        if isinstance(message, int):  # the number of a cue, or what is said in one
            return self._read_line(raw, "not a JSON object")
        raise ValueError("not a JSON object")

    def _read_line(self, raw: str | bytes, wrong: str) -> list[Heard]:
        """Return what a line says that is not JSON, or carries some. Raises :class:`ValueError`."""
        line = (raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw).rstrip("\r\n")
        line = plain_lines.with_few_blanks(line)
        line, is_redrawn = plain_lines.last_state(line)
        within = plain_lines.carried(line)
        if within is None or (is_redrawn and not within.strip()) or self._lines.is_of_cue(line):
            return []
        if is_json(within) or (within != line and within.startswith("[")):
            if within != line:
                return self._heard(within)
            try:
                message = parse(within)
            except ValueError:
                raise ValueError(wrong) from None
            return [*self._read(message)] if isinstance(message, dict) else []
        said = self._lines.read(line, is_speech=is_redrawn)
        if said is None:
            raise ValueError(wrong)
        return [said]

    def _read(self, message: Message) -> Iterable[Heard]:
        kind = message.get("type")
        for service in SERVICES:
            if service.matches(message):
                return service.read(message, self._stream)
        if told := _error(message):
            raise ValueError(f"the transcriber reports an error: {told[:LONGEST_REASON]}")
        for service in OTHERS:
            if service.matches(message):
                return service.read(message, self._stream)
        if (
            (isinstance(kind, str) and (kind in _CONTROL or kind in _INTERIM))
            or "uid" in message
            or "partial" in message
        ):
            return ()
        raise ValueError("not a message as a transcriber or a chat program that is known sends while people talk")


def _error(message: Message) -> str:
    """Return what a message reports as an error; nothing where it reports none."""
    kind, reason = message.get("type"), message.get("error")
    if isinstance(reason, dict):
        reason = reason.get("message") or reason.get("code") or "error"
        if kind != "error":  # of one item: another follows
            return ""
    reason = reason or (kind in ("Error", "error") and (message.get("description") or message.get("message")))
    return (reason if isinstance(reason, str) else str(kind)) if reason else ""


def _is_plain(message: Message) -> bool:
    kind = message.get("type")
    return segments.is_plain(message) and not (isinstance(kind, str) and kind in _INTERIM)


def _is_speechmatics(message: Message) -> bool:
    kind = message.get("message")
    known = ("RecognitionStarted", "AudioAdded", "ChannelAudioAdded", "Info", "Warning", "Error", "SpeakersResult")
    return isinstance(kind, str) and (kind in known or kind.startswith(("Add", "EndOf", "StartOf", "AudioEvent")))
