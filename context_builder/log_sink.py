"""A sink takes lines of a log, and never fails or stops whoever tells them, whatever became of the file behind it."""

from __future__ import annotations

import atexit
import os
import select
import threading
from collections import deque
from contextlib import suppress
from typing import Final, TextIO

MOST_LINES: Final = 10_000
"""Lines that wait for a reader that stands still; later ones are lost, and counted."""

PIPE_BYTES: Final = 4096
"""A pipe that is ready takes so much without blocking (``PIPE_BUF``)."""

LAST_SECONDS: Final = 1.0
"""Time that lines which wait have at the end of the process."""


class LogSink:
    """Writes lines to ``file``, as ``print`` does.

    Errors are dropped with their lines: the reader of a pipe has gone away, or a disk is full. While a reader stands
    still, a thread waits for it with what is told meanwhile.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._line = ""
        self._waiting: deque[str] = deque()
        self._lost = 0
        self._lock = threading.Lock()
        self._writer: threading.Thread | None = None
        atexit.register(self._finish)

    def write(self, text: str) -> int:
        self._line += text
        return len(text)

    def flush(self) -> None:
        """Write what was given since the last time."""
        line, self._line = self._line, ""
        with self._lock:
            if self._writer is None and self._takes(line):
                self._put(line)
                return
            if len(self._waiting) < MOST_LINES:
                self._waiting.append(line)
            else:
                self._lost += 1
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_waiting, name="log", daemon=True)
                self._writer.start()

    def _takes(self, line: str) -> bool:
        """Return whether the file takes the line at once, as all but pipes and terminals do."""
        try:
            number = self._file.fileno()
            if self._file.seekable():
                return True
            return bool(select.select([], [number], [], 0)[1]) and len(line.encode()) <= PIPE_BYTES
        except (OSError, ValueError, AttributeError):
            return True

    def _put(self, line: str) -> None:
        """Write the line, past the file's own buffer: a thread that waits with that locked would keep Python from
        ending."""
        with suppress(OSError, ValueError):  # ValueError: it is closed
            try:
                number = self._file.fileno()
            except (OSError, AttributeError):  # there is no file, as in tests
                self._file.write(line)
                return
            rest = line.encode(errors="backslashreplace")
            while rest:
                rest = rest[os.write(number, rest) :]

    def _write_waiting(self) -> None:
        while True:
            with self._lock:
                if not self._waiting and not self._lost:
                    self._writer = None
                    return
                if self._waiting:
                    line = self._waiting.popleft()
                else:
                    line, self._lost = f'{{"event":"log.lost","lines":{self._lost}}}\n', 0
            self._put(line)

    def _finish(self) -> None:
        if (writer := self._writer) is not None:
            writer.join(LAST_SECONDS)
