"""A JSON document is read here, by whichever program it was written: of speech, or of a chat."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from context_builder.errors import TranscriptError
from context_builder.transcript.chat_json import Names, matrix, slack, slack_names
from context_builder.transcript.speech_json import speech
from context_builder.transcript.utterance import Utterance

USERS = "users.json"
"""Beside the folders of a Slack export: who its users are."""


def parse_json_document(text: str, name: str, names: Names | None = None) -> list[Utterance]:
    """Return the utterances of a document, in the order of their times where they have some.

    ``names`` are those of Slack's users by id. Raises :class:`TranscriptError` naming the file ``name``.
    """
    try:
        document: Any = orjson.loads(text)
        if isinstance(document, list):
            return _from_the_first(slack(document, names or {}))
        if isinstance(document, dict):
            if isinstance(document.get("messages"), list):
                said = matrix(document["messages"]) or slack(document["messages"], names or {})
                return _from_the_first(said)
            if (spoken := speech(document)) is not None:
                return [*spoken]
    except orjson.JSONDecodeError as error:
        raise TranscriptError(f"{name}: not JSON: {error}") from None
    except ValueError as error:
        raise TranscriptError(f"{name}: {error}") from None
    known = "Deepgram, AssemblyAI, Whisper, whisper.cpp, Slack and Matrix"
    raise TranscriptError(f"{name}: not a document as {known} write it")


def read_slack_folder(folder: Path) -> list[Utterance]:
    """Return what was said in a channel of a Slack export, a folder with a file for each day.

    Raises :class:`TranscriptError` naming the file.
    """
    names: dict[str, str] = {}
    for users in (folder / USERS, folder.parent / USERS):
        if users.is_file():
            names = _slack(users, slack_names)
            break
    days = sorted(path for path in folder.glob("*.json") if path.name != USERS)
    if not days:
        raise TranscriptError(f"{folder}: holds no file of a Slack export, such as 2025-01-31.json")
    said = [one for day in days for one in _slack(day, lambda messages: slack(messages, names))]
    return _from_the_first(said)


def _slack(path: Path, parse: Any) -> Any:
    try:
        return parse(orjson.loads(path.read_bytes()))
    except orjson.JSONDecodeError as error:
        raise TranscriptError(f"{path}: not JSON: {error}") from None
    except ValueError as error:
        raise TranscriptError(f"{path}: {error}") from None
    except OSError as error:
        raise TranscriptError(f"{path}: {error.strerror}") from None


def _from_the_first(said: list[tuple[float, Utterance]]) -> list[Utterance]:
    """Return the utterances in the order of their times, which count from the first."""
    ordered = sorted(said, key=lambda one: one[0])
    return [replace(utterance, at=at - ordered[0][0]) for at, utterance in ordered]
