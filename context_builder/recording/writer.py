"""The thread that writes recordings, so that no session ever waits for a disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, Literal

import structlog

from context_builder.clock import Instant
from context_builder.recording.file import RecordingFile, place_of
from context_builder.recording.recording import Encoder, digest
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.state import PublishedState
from context_builder.session.recorder import SessionEvent
from context_builder.session.store.recovery import StoredSession

log = structlog.get_logger(__name__)

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
            file.fail(f"cannot be written down: {error!r}")

    def _flush(self) -> None:
        for file in self._open:
            file.flush()


class FileRecorder:
    """Records one session into one file; ``tokens`` names what counts its texts.

    Implements :class:`~context_builder.session.recorder.Recorder`.
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
