"""Transcripts with one JSON object a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from context_builder.clock import epoch, moment
from context_builder.transcript import live_speech
from context_builder.transcript.fields import inner, parse
from context_builder.transcript.formats import turns
from context_builder.transcript.formats.chats import chat_of
from context_builder.transcript.formats.exchanges import exchanges_in
from context_builder.transcript.formats.messengers import is_about
from context_builder.transcript.formats.turn import is_number, name_of_part, text_of, turn_of, when_of, who_of
from context_builder.transcript.repeats import grown
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import ASSISTANT, Heard, Transcript, Utterance, corrected

_TEXT: Final = ("content", "transcript", "message")
_WHO: Final = ("speaker_name", "name", "role", "user")
"""How other programs call ``text`` and ``speaker``."""

_UNSAID: Final = frozenset(
    (
        "summary", "system", "file-history-snapshot", "session_meta", "tool", "user", "assistant", "mode",
        "permission-mode", "last-prompt", "attachment", "queue-operation", "progress", "response_item", "turn_context",
        "Welcome", "SettingsApplied", "AgentStartedSpeaking", "AgentThinking", "AgentAudioDone", "UserStartedSpeaking",
        "FunctionCallRequest", "FunctionCallResponse", "History",
    )
)  # fmt: skip
"""Types of lines of programs for chats with models, and of Deepgram's agent, in which nothing is said."""

_AGAIN: Final = "History"
"""Type of a line in which Deepgram's agent tells once more what was said, behind each ``ConversationText``."""

_PROBE: Final = 20
"""Lines by which a saved stream is known."""


def read_json_lines(source: Source) -> Transcript:
    """Return the utterances of JSON lines (``speaker``, and the time as ``t_est`` or ``timestamp``, may be missing).

    ``t_est``, or ``start`` where there is neither, is in seconds from the start; ``timestamp`` is ISO 8601 and counts
    from the first one in the file. Other fields are ignored, but for ``type`` and ``metadata`` of an assistant's
    contribution. Lines that cannot be read are noted. Messages of chat programs are read as such.
    """
    if (live := _live(source)) is not None:
        return live
    utterances: list[Utterance] = []
    events: list[Any] = []
    start: float | None = None
    before: float | None = None
    started: datetime | None = None
    unsaid = 0
    conversations: list[Utterance] = []
    is_rollout = '"response_item"' in source.text  # Codex', which tells events of what is said, too
    is_agent = '"ConversationText"' in source.text
    for number, line in enumerate(source.text.split("\n"), start=1):
        if not line.strip():
            continue
        with source.one_entry(number):
            entry = _object(line)
            if is_about(entry) or chat_of([entry]) is not None:
                events.append(entry)
                continue
            if entry.get("isMeta") is True or (is_agent and entry.get("type") == _AGAIN):
                unsaid += 1
                continue
            if entry.get("is_final") is False or (is_rollout and entry.get("type") == "event_msg"):
                continue
            if isinstance(entry.get("text"), str):
                entry = {**entry, **_when(turn_of(entry), source, number)}
            if not isinstance(entry.get("text"), str):
                entry = _turn(entry, source, number) or {
                    **entry,
                    "text": next((entry[key] for key in _TEXT if isinstance(entry.get(key), str)), None),
                }
            if entry["text"] is None and (asked := exchanges_in(entry)):
                utterances += turns.read_turns(asked, source).utterances
                continue
            if entry["text"] is None and turns.turns_in(entry) is not None:  # a conversation
                told = turns.read_turns(entry, source)
                if told.started is None:
                    conversations += told.utterances
                    utterances += told.utterances
                else:  # its times count from its own first moment
                    utterances += [replace(one, at=None) for one in told.utterances]
                continue
            if entry["text"] is None:
                if entry.get("type") in _UNSAID:
                    unsaid += 1
                    continue
                if "partial" in entry or entry.get("type") == "done":
                    continue
                raise ValueError('no "text"')
            at = _timestamp(entry, before, source, number)
            before = before if at is None else at
            start = at if start is None else start
            seconds = _seconds(entry, at, start, source, number)
            if started is None and at is not None and seconds is not None:
                started = _zoned(entry["timestamp"], at - seconds)
            if entry["text"].strip():
                utterances.append(_utterance(entry, seconds))
    source.left_out(unsaid, "line", "of tools and settings, not said,")
    if not utterances and (chat := chat_of(events)) is not None:
        return chat.read(events, source)
    if _begins_again(conversations):
        utterances = [replace(one, at=None, until=None) for one in utterances]
    said = [replace(one, key=None) for one in grown(utterances)]
    return Transcript(said, started)


def _turn(entry: dict[str, Any], source: Source, line: int) -> dict[str, Any] | None:
    """Return a turn of another program's as a line of ours; None where it says nothing."""
    turn = turn_of(entry)
    if not (words := text_of(turn)) or turns.lists_in_words(entry):
        return None
    return {**entry, "text": words, "speaker": who_of(turn)} | _when(turn, source, line)


def _when(turn: Mapping[str, Any], source: Source, line: int) -> dict[str, Any]:
    """Return when a turn of another program begins, as a line of ours has it."""
    told = turn.get("timestamp")
    if isinstance(told, str) and not is_number(told):
        return {}
    at, moment = when_of(turn, f"line {line}", source)
    if moment is not None:
        return {"timestamp": moment.isoformat()}
    if at is None:
        return {}
    return {"t_est": at, "timestamp": None} if isinstance(told, str) else {"t_est": at}


def _live(source: Source) -> Transcript | None:
    """Return what a stream of a transcriber says that was saved, message by message; None for other lines."""
    lines = [(number, line) for number, line in enumerate(source.text.split("\n"), start=1) if line.strip()]
    if not any(live_speech.is_of_service(line) and not _is_of_chat(line) for _, line in lines[:_PROBE]):
        return None
    speech = live_speech.LiveSpeech()
    said: list[Heard] = []
    for number, line in lines:
        with source.one_entry(number):
            said += speech.read(line)
    heard = corrected([*said, *speech.rest()])
    return Transcript([replace(one, at=None, until=None) for one in heard] if _begins_again(heard) else heard)


def _begins_again(heard: Sequence[Utterance]) -> bool:
    """Return whether times are of several connections, each from zero: somebody then speaks before what they said."""
    latest: dict[str, float] = {}
    for one in heard:
        if one.at is not None:
            if one.at < latest.get(one.speaker, 0.0):
                return True
            latest[one.speaker] = one.at
    return False


def _is_of_chat(line: str) -> bool:
    entry = parse(line)
    return is_about(entry) or chat_of([entry]) is not None


def _object(line: str) -> dict[str, Any]:
    entry = parse(line)
    if not isinstance(entry, dict):
        raise ValueError("not a JSON object")
    return entry


def _timestamp(entry: dict[str, Any], before: float | None, source: Source, line: int) -> float | None:
    """Return the epoch seconds of an utterance's timestamp, if any; ``before`` are those of the last one."""
    if (timestamp := entry.get("timestamp")) is None:
        return None
    at = epoch(timestamp, near=before) if isinstance(timestamp, str) else None
    if at is None:
        source.problem('"timestamp" is not ISO 8601', line)
    return at


def _zoned(timestamp: str, seconds: float) -> datetime | None:
    """Return the moment at so many epoch seconds, in the zone that a timestamp has, or the local one."""
    told, found = datetime.fromisoformat(timestamp), moment(seconds)
    return None if found is None else found.astimezone(told.tzinfo)


def _seconds(entry: dict[str, Any], at: float | None, start: float | None, source: Source, line: int) -> float | None:
    if (seconds := entry.get("t_est")) is not None:
        if not isinstance(seconds, bool) and isinstance(seconds, int | float) and abs(seconds) < 1e11:
            return float(seconds)
        source.problem('"t_est" is not a number of seconds', line)
    elif at is None and isinstance(begin := entry.get("start"), int | float) and not isinstance(begin, bool):
        return float(begin) if 0 <= begin < 1e11 else None
    return None if at is None or start is None else at - start


def _utterance(entry: dict[str, Any], at: float | None) -> Utterance:
    named = (entry[key] for key in _WHO if isinstance(entry.get(key), str | int) and entry[key])
    speaker = str(entry.get("speaker") or next(named, "") or who_of(turn_of(entry)))
    text = entry["text"].encode("utf-8", "replace").decode("utf-8")
    if speaker != ASSISTANT and entry.get("type") != "consilience":
        return Utterance(speaker, text, at, key=name_of_part(turn_of(entry)))
    return Utterance(speaker, text, at, inner(entry, "metadata"))
