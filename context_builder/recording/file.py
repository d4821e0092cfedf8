"""A recording is one file, which every run of its session may continue; a folder has one a session.

Nothing outside of the folder is opened. A thread writes recordings, so that no session ever waits for a disk.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import BinaryIO, Final, Literal

import orjson
import structlog

from context_builder.clock import Instant
from context_builder.errors import RecordingError, SessionIdError
from context_builder.recording.recording import Encoder, digest
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.state import PublishedState
from context_builder.session.events import SessionEvent
from context_builder.session.failures import reason_of
from context_builder.session.keys import decoded_session_id, encoded_session_id
from context_builder.session.store.recovery import StoredSession

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
        raise RecordingError("already exists, and is not a recording of a session")
    if other != session_id:
        raise RecordingError(f"already exists, as a recording of session {other}")


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


FLUSH_SECONDS: Final = 1.0
"""Seconds until an event is in the file."""

MOST_WAITING: Final = 20_000
"""Lines that may wait for a slow disk; with more, recording ends instead of filling the memory."""

CLOSE_SECONDS: Final = 3.0
"""Seconds that leaving may take because of a slow disk."""

Encode = Callable[[], bytes]


class RecordingWriter:
    """Writes the recordings of all sessions of a process. The thread begins with the first of them."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[RecordingFile, Encode | Literal["forget"] | None] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._open: set[RecordingFile] = set()

    def put(self, file: RecordingFile, encode: Encode | Literal["forget"] | None) -> None:
        """Let the thread write a line, close the file with None, or delete it."""
        if self._thread is None:
            self._thread = Thread(target=self._work, name="recordings", daemon=True)
            self._thread.start()
        ends = encode is None or encode == "forget"
        if not ends and self._queue.qsize() >= MOST_WAITING:
            file.fail(f"the disk is too slow: {MOST_WAITING:,} lines wait")
        if not file.failed or ends:
            self._queue.put((file, encode))

    async def close(self) -> None:
        """Write the waiting lines, and end the thread."""
        if self._thread is not None:
            self._queue.put(None)
            await asyncio.to_thread(self._thread.join, CLOSE_SECONDS)
            if self._thread.is_alive():
                log.warning("recording.cut_off", after_seconds=CLOSE_SECONDS, waiting=self._queue.qsize())
            self._thread = None

    def _work(self) -> None:
        flush_at: float | None = None
        while True:
            try:
                item = self._queue.get(timeout=None if flush_at is None else max(0.0, flush_at - time.monotonic()))
            except Empty:
                self._flush()
                flush_at = None
                continue
            if item is None:
                break
            self._take(*item)
            if flush_at is None:
                flush_at = time.monotonic() + FLUSH_SECONDS
            elif time.monotonic() >= flush_at:
                self._flush()
                flush_at = None
        for file in self._open:
            file.close()
        self._open.clear()

    def _take(self, file: RecordingFile, encode: Encode | Literal["forget"] | None) -> None:
        if encode is None or encode == "forget":
            (file.close if encode is None else file.forget)()
            self._open.discard(file)
            return
        self._open.add(file)
        try:
            file.add(encode())
        except Exception as error:  # noqa: BLE001  # whatever it is, the other recordings go on
            file.fail(f"cannot be written down: {reason_of(error)}")

    def _flush(self) -> None:
        for file in self._open:
            file.flush()


class FileRecorder:
    """Records one session into one file; ``tokens`` names what counts its texts.

    Implements :class:`~context_builder.session.events.Recorder`.
    """

    def __init__(self, writer: RecordingWriter, path: Path, tokens: str) -> None:
        self.path = path
        self._writer = writer
        self._tokens = tokens
        self._encoder = Encoder()
        self._file: RecordingFile | None = None

    def begin(self, session_id: str, rules: SessionConfig, snapshot: StoredSession, now: Instant) -> None:
        self._file = RecordingFile(self.path, session_id)
        encoder = self._encoder = Encoder()
        self._put(lambda: encoder.begin(session_id, rules, self._tokens, snapshot, now))

    def happened(self, what: SessionEvent, now: Instant) -> None:
        encoder = self._encoder
        self._put(lambda: encoder.happened(what, now))

    def published(self, revision: int, state: PublishedState, now: Instant) -> None:
        encoder, state_digest = self._encoder, digest(bytes(state))  # 3 ms a megabyte; the state is large to keep
        self._put(lambda: encoder.published(revision, state_digest, now))

    @property
    def place(self) -> str:
        return place_of(self.path)

    def end(self) -> None:
        if self._file is not None:
            self._writer.put(self._file, None)

    def forget(self) -> None:
        if self._file is not None:
            self._writer.put(self._file, "forget")

    def _put(self, encode: Encode) -> None:
        if self._file is not None:
            self._writer.put(self._file, encode)
