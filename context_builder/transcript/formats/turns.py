"""Lists of turns in JSON, whose fields many meeting tools call alike: who, what, and when.

Fireflies' ``sentences``, Teams' ``entries``, Otter's ``transcripts``, Google Meet's ``transcriptEntries``, and lists
alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from context_builder.transcript.fields import Object, each_object, inner, number, optional_text
from context_builder.transcript.formats.whisper import labelled
from context_builder.transcript.moments import epoch_seconds, iso
from context_builder.transcript.offsets import offset
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, name_of, speaker_name

_LISTS: Final = (
    "sentences", "entries", "transcriptEntries", "transcripts", "transcript", "turns", "utterances", "monologues",
    "segments", "messages", "data", "lines", "Transcript", "items",
    "prediction", "callTranscripts",
)  # fmt: skip
_TEXT: Final = (
    "text", "sentence", "raw_text", "transcript", "content", "words", "body", "message", "utterance", "Content",
    "transcription",
)  # fmt: skip
_WHO: Final = (
    "speaker_name", "speakerName", "speakerDisplayName", "speakerDesignation", "speaker", "name", "participant",
    "participantName", "author", "user", "from", "sender", "role", "speaker_id", "speakerId", "ParticipantRole",
    "personName",
)  # fmt: skip
_WHEN: Final = (
    "start_time", "startTime", "start", "startOffset", "start_timestamp", "startTimestamp", "begin", "offset", "time",
    "timestamp", "ts", "created_at", "createdAt", "date",
    "start_ms", "startMs", "begin_ms", "BeginOffsetMillis", "offsetMilliseconds", "time_begin",
)  # fmt: skip
_UNTIL: Final = (
    "end_time", "endTime", "end", "endOffset", "end_timestamp", "end_ms", "endMs", "EndOffsetMillis", "time_end",
)  # fmt: skip
_BEGUN: Final = ("date", "dateString", "started_at", "start_time", "startTime", "meeting_date", "created_at")
_MILLISECONDS: Final = ("_ms", "Ms", "Millis", "Milliseconds")
_DEEPEST: Final = 4
_EPOCH: Final = 100_000_000.0
"""A number above this is a moment, not seconds of a recording."""

_DURATION: Final = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?")


def turns_in(document: Any, depth: int = 0) -> list[Any] | None:
    """Return the list of turns that a document is or holds; None where it has none."""
    if isinstance(document, list):
        some = [one for one in document[:20] if isinstance(one, dict)]
        if any((_says(one) or _parts(one)) and _has(one, (*_WHO, *_WHEN)) for one in some):
            return document
        return next((found for one in some if (found := turns_in(one, depth + 1)) is not None), None)
    if not isinstance(document, dict) or depth > _DEEPEST:
        return None
    for key in (*_LISTS, *(key for key in document if key not in _LISTS)):
        inside = document.get(key)
        if isinstance(inside, dict | list) and (found := turns_in(inside, depth + 1)) is not None:
            return found
    return None


def read_turns(document: Any, source: Source) -> Transcript:
    """Return the transcript of a document with a list of turns."""
    entries = turns_in(document) or []
    moments: list[datetime | None] = []
    said: list[Utterance] = []
    for where, one in each_object(entries, "turns", source):
        if parts := _parts(one):
            one = {**parts[0], **one, "text": " ".join(optional_text(part, "text") for part in parts)}
        if isinstance(found := one.get("instances"), list) and found and isinstance(found[0], dict):
            one = {**one, **found[0]}
        if not (words := optional_text(one, *_TEXT)):
            if not _says(one):
                source.problem(f"{where} has no text")
            continue
        at, moment = _when(one, _WHEN, where, source)
        until, _ = _when(one, _UNTIL, where, source)
        said.append(Utterance(_who(one), words, at, until=until))
        moments.append(moment)
    told = [moment for moment in moments if moment is not None]
    if told:
        started = min(told)
        said = [
            Utterance(one.speaker, one.text, None if moment is None else (moment - started).total_seconds())
            for one, moment in zip(said, moments, strict=True)
        ]
        return Transcript(labelled(said), started)
    if isinstance(document, dict) and "callTranscripts" in document:  # Gong's are in milliseconds
        said = [replace(one, at=None if one.at is None else one.at / 1000) for one in said]
    return Transcript(labelled(said), _begun(document))


def _parts(one: Object) -> list[Object]:
    """Return the parts of what a turn says: sentences (Gong), or the text parts of a message to a model."""
    parts: list[Any] = next((one[key] for key in ("sentences", "content") if isinstance(one.get(key), list)), [])
    return [part for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]


def _says(one: Object) -> bool:
    return any(isinstance(one.get(key), str) for key in _TEXT)


def _has(one: Object, keys: Sequence[str]) -> bool:
    return any(one.get(key) is not None for key in keys)


def _who(one: Object) -> str:
    for key in _WHO:
        value = one.get(key)
        if isinstance(value, dict):
            value = optional_text(value, "display_name", "displayName", "name", "username", "email", "id")
        if isinstance(value, str) and value.strip() and not (key == "from" and value == one.get("text")):
            return speaker_name(value.strip())
        if isinstance(value, int) and not isinstance(value, bool):
            return speaker_name(value)
    return name_of(UNKNOWN_SPEAKER)


def _when(one: Object, keys: Sequence[str], where: str, source: Source) -> tuple[float | None, datetime | None]:
    """Return the seconds from the beginning, or the moment, of the first of the fields that tells a time."""
    for key in keys:
        value = one.get(key)
        if isinstance(value, bool | dict | list | None):
            continue
        try:
            if isinstance(value, str) and not _is_number(value):
                return _read(value)
            found = number(one, key, where)
            if found is not None and found >= _EPOCH and not key.endswith(_MILLISECONDS):
                return None, datetime.fromtimestamp(epoch_seconds(found, key)).astimezone()
            if found is not None:
                return found * (0.001 if key.endswith(_MILLISECONDS) else 1.0), None
        except (ValueError, OverflowError) as error:
            source.problem(f'"{key}" of {where}: {error}')
    return None, None


def _is_number(value: str) -> bool:
    return bool(re.fullmatch(r"\s*-?\d+(?:\.\d+)?(?:e[+-]?\d+)?\s*", value, re.IGNORECASE))


def _read(value: str) -> tuple[float | None, datetime | None]:
    if duration := _DURATION.fullmatch(value.strip()):
        hours, minutes, seconds = (float(one or 0) for one in duration.groups())
        return hours * 3600 + minutes * 60 + seconds, None
    if re.match(r"\s*\d{4}-\d\d-\d\d", value):
        return None, iso(value)
    return offset(value.strip(" []()")), None


def _begun(document: Any) -> datetime | None:
    """Return when the meeting began, where its document says."""
    if not isinstance(document, dict):
        return None
    for holder in (
        document,
        *(inner(document, *keys) for keys in (("data", "transcript"), ("transcript",), ("meeting",))),
    ):
        for key in _BEGUN:
            value = holder.get(key)
            try:
                if isinstance(value, int | float) and not isinstance(value, bool) and value >= _EPOCH:
                    return datetime.fromtimestamp(epoch_seconds(value, key)).astimezone()
                if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value):
                    return iso(value)
            except (ValueError, OverflowError):
                continue
    return None
