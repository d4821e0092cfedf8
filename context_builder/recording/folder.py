"""A folder of recordings: which there are, each by the session's name; nothing outside of the folder is opened."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from context_builder.errors import RecordingError, SessionIdError
from context_builder.session.keys import decoded_session_id, encoded_session_id

SUFFIX: Final = ".jsonl"


@dataclass(frozen=True, slots=True)
class RecordingEntry:
    """What a folder says about a recording; ``changed_at`` is in epoch seconds."""

    session_id: str
    path: Path
    size: int
    changed_at: float


def file_name(session_id: str) -> str:
    """Return the name of the file that the session is recorded in."""
    return f"{encoded_session_id(session_id)}{SUFFIX}"


def recordings_in(folder: Path) -> list[RecordingEntry]:
    """Return the recordings of sessions in the folder, the one that was written last first.

    Links are left out, wherever they lead to, and so is a file that is not named as a session can be. There is none
    where there is no folder.
    """
    try:
        with os.scandir(folder) as entries:
            found = [one for entry in entries if (one := _entry(entry)) is not None]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RecordingError(f"{folder}: cannot be read: {error.strerror or error}") from None
    return sorted(found, key=lambda one: (-one.changed_at, one.session_id))


def find_recording(folder: Path, session_id: str) -> RecordingEntry | None:
    """Return the session's recording; the name is compared with what is in the folder, and never made a path."""
    return next((one for one in recordings_in(folder) if one.session_id == session_id), None)


def open_recording(path: Path) -> BinaryIO:
    """Open a recording to be read. Raises :class:`OSError`, also for what has become a link since it was found."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")


def _entry(entry: os.DirEntry[str]) -> RecordingEntry | None:
    if not entry.name.endswith(SUFFIX) or not entry.is_file(follow_symlinks=False):
        return None
    try:
        session_id = decoded_session_id(entry.name.removesuffix(SUFFIX))
        status = entry.stat(follow_symlinks=False)
    except (SessionIdError, FileNotFoundError):  # it may have been deleted since it was listed
        return None
    return RecordingEntry(session_id, Path(entry.path), status.st_size, status.st_mtime)
