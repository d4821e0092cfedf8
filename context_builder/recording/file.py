"""A recording is one file, which every run of its session may continue; a folder has one a session.

Nothing outside of the folder is opened.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import orjson
import structlog

from context_builder.errors import RecordingError, SessionIdError
from context_builder.session.keys import decoded_session_id, encoded_session_id

log = structlog.get_logger(__name__)


_MODE: Final = 0o600
"""For its owner alone: it holds what people said."""

_LONGEST_HEADER: Final = 256 * 1024 * 1024


class RecordingFile:
    """Lines are gathered by :meth:`add` and written by :meth:`flush`.

    The first failure is told and ends the recording; from then on nothing happens.
    """

    def __init__(self, path: Path, session_id: str) -> None:
        self.path = path
        self._session_id = session_id
        self._descriptor: int | None = None
        self._lines: list[bytes] = []
        self.failed = False

    def add(self, line: bytes) -> None:
        if not self.failed:
            self._lines.append(line)

    def flush(self) -> None:
        """Append what was gathered, in one piece."""
        data = memoryview(b"".join(self._lines))
        self._lines.clear()
        if self.failed or not data:
            return
        try:
            if self._descriptor is None:
                self._descriptor = self._open()
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            self.fail(error.strerror or type(error).__name__)
        except RecordingError as error:
            self.fail(str(error))

    def close(self) -> None:
        self.flush()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def forget(self) -> None:
        """Delete the file, and write nothing more."""
        self.failed = True
        self.close()
        try:
            delete(self.path)
        except RecordingError as error:
            log.error("recording.not_deleted", error=str(error))

    def fail(self, reason: str) -> None:
        """Tell why nothing more is recorded, once."""
        if not self.failed:
            self.failed = True
            hint = "the session goes on unrecorded; start it again to record from then on"
            log.warning("recording.stopped", file=str(self.path), reason=reason, hint=hint)

    def _open(self) -> int:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _MODE)
        try:
            self._continue(descriptor)
        except BaseException:  # Ctrl-C, too: the file is closed, and the error goes on
            os.close(descriptor)
            raise
        return descriptor

    def _continue(self, descriptor: int) -> None:
        """Make ready to append to what is there, which must be a recording of the same session."""
        size = os.fstat(descriptor).st_size
        if not size:
            return
        with self.path.open("rb") as existing:
            check_header(existing.readline(_LONGEST_HEADER), self._session_id)
        if os.pread(descriptor, 1, size - 1) != b"\n":
            os.write(descriptor, b"\n")  # the last run was cut off within a line


def place_of(path: Path) -> str:
    """Return where the file is, for people: on which machine, and its path."""
    return f"{socket.gethostname()}:{path.absolute()}"


def delete(path: Path) -> bool:
    """Delete a recording, if there is one. Raises :class:`RecordingError` when that is refused."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise RecordingError(f"{path}: cannot be deleted: {error.strerror or error}") from None
    return True


def check_header(line: bytes, session_id: str) -> None:
    """Raise :class:`RecordingError` unless ``line`` begins a recording of the session."""
    try:
        header = orjson.loads(line)
        other = header["session_id"] if header["event"] == "begin" else None
    except (orjson.JSONDecodeError, KeyError, TypeError):
        other = None
    if other is None:
        raise RecordingError("is there already, and is no recording of a session")
    if other != session_id:
        raise RecordingError(f"is there already, as a recording of session {other}")


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
