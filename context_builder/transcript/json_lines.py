"""This module parses transcripts with one JSON object a line."""

from __future__ import annotations

from typing import Any

import orjson

from context_builder.errors import TranscriptError
from context_builder.timestamps import epoch
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Utterance


def parse_json_lines(text: str, name: str) -> list[Utterance]:
    """Return the utterances of ``text`` (``speaker``, and the time as ``t_est`` or ``timestamp``, may be missing).

    ``t_est`` is in seconds from the start; ``timestamp`` is ISO 8601 and counts from the first
    one in the file. Other fields are ignored, but for ``type`` and ``metadata`` of an
    assistant's contribution. Raises :class:`TranscriptError` naming the line in ``name``.
    """
    utterances: list[Utterance] = []
    start: float | None = None
    before: float | None = None
    for line_number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = _entry(line)
            at = _timestamp(entry, before)
            before = before if at is None else at
            start = at if start is None else start
            utterances.append(_utterance(entry, _seconds(entry, at, start)))
        except ValueError as error:
            raise TranscriptError(f"{name}:{line_number}: {error}") from None
    return utterances


def _entry(line: str) -> dict[str, Any]:
    try:
        entry = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(entry, dict):
        raise ValueError("not a JSON object")
    if not isinstance(entry.get("text"), str):
        raise ValueError('no "text"')
    return entry


def _timestamp(entry: dict[str, Any], before: float | None) -> float | None:
    """Return the epoch seconds of an utterance's timestamp, if any; ``before`` are those of the last one."""
    if (timestamp := entry.get("timestamp")) is None:
        return None
    at = epoch(timestamp, near=before) if isinstance(timestamp, str) else None
    if at is None:
        raise ValueError('"timestamp" is not ISO 8601')
    return at


def _seconds(entry: dict[str, Any], at: float | None, start: float | None) -> float | None:
    if (seconds := entry.get("t_est")) is not None:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise ValueError('"t_est" is not a number of seconds')
        return float(seconds)
    return None if at is None or start is None else at - start


def _utterance(entry: dict[str, Any], at: float | None) -> Utterance:
    speaker = str(entry.get("speaker") or UNKNOWN_SPEAKER)
    if speaker != "Consilience" and entry.get("type") != "consilience":
        return Utterance(speaker, entry["text"], at)
    metadata = entry.get("metadata")
    return Utterance(speaker, entry["text"], at, metadata if isinstance(metadata, dict) else {})
