"""Log events: dotted names with fields, readable in a terminal and JSON otherwise; never what people said."""

from __future__ import annotations

import logging
import sys
import traceback
from typing import Final, Literal, TextIO, cast

import structlog
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from context_builder.log_sink import LogSink

_MOST_CAUSES: Final = 10

RETRIES_PER_LINE: Final = 60
"""Of so many failed attempts in a row only the first is logged: what stays away does not fill the log."""


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
