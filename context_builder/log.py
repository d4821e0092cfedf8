"""Log events: dotted names with fields, readable in a terminal and JSON otherwise; never what people said."""

from __future__ import annotations

import atexit
import logging
import os
import select
import sys
import threading
import traceback
from collections import deque
from contextlib import suppress
from typing import Final, Literal, TextIO, cast

import structlog
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

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


_MOST_CAUSES: Final = 10

RETRIES_PER_LINE: Final = 60
"""Failed attempts in a row of which one is logged, the first: what stays away does not fill the log."""


def configure(
    level: Literal["debug", "info", "warning", "error"] = "info",
    form: Literal["auto", "console", "json"] = "auto",
) -> None:
    """Send events of at least ``level`` to standard error; ``auto`` asks whether that is a terminal.

    What reads there may stand still or go away.
    """
    readable = form == "console" or (form == "auto" and sys.stderr.isatty())
    as_lines: list[structlog.typing.Processor] = [_harmless, _EXCEPTIONS, structlog.dev.ConsoleRenderer()]
    as_json: list[structlog.typing.Processor] = [_EXCEPTIONS, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S" if readable else "iso", utc=not readable),
            *(as_lines if readable else as_json),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", LogSink(sys.stderr))),
    )
    set_on_retry_hooks([_tell_of_retry])


def leave_to_logging() -> None:
    """Hand events to :mod:`logging`, as libraries do, unless the program has configured structlog: none is shown until
    the program shows what the loggers below ``context_builder`` say, and nothing goes to standard output.
    """
    if structlog.is_configured():
        return
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            _EXCEPTIONS,
            structlog.processors.LogfmtRenderer(key_order=["event"], bool_as_flag=False),
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    for name in ("context_builder", "stamina"):
        logging.getLogger(name).addHandler(logging.NullHandler())


def _tell_of_retry(details: RetryDetails) -> None:
    if details.retry_num % RETRIES_PER_LINE == 1:
        so_far = {"failed_attempts": details.retry_num} if details.retry_num > 1 else {}
        structlog.get_logger(__name__).warning("retrying", error=_reason(details.caused_by), **so_far)


def _reason(error: BaseException) -> str:
    """Return what an error of ours says; of others, which may quote what people said, only the kind."""
    kind = type(error)
    is_ours = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
    return (is_ours and str(error)) or kind.__name__


def _traceback(exc_info: structlog.typing.ExcInfo) -> str:
    """Return where an error and those that it came from were raised, without what errors of others say."""
    error: BaseException | None = exc_info[1]
    raised: list[str] = []
    while error is not None and len(raised) < _MOST_CAUSES:
        raised.append("".join([*traceback.format_tb(error.__traceback__), f"{type(error).__name__}: {_reason(error)}"]))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\nfrom which came:\n".join(reversed(raised))


_EXCEPTIONS: Final = structlog.processors.ExceptionRenderer(_traceback)


def _harmless(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Return values as Python writes them where they could draw on a terminal or begin a line of their own."""
    for name, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[name] = repr(value)
    return event
