"""Log events: dotted names with fields, readable in a terminal and JSON otherwise; never what people said."""

from __future__ import annotations

import logging
import sys
from typing import Final, Literal

import structlog
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

RETRIES_PER_LINE: Final = 60
"""Of so many vain tries in a row only the first is told: what stays away does not fill the log."""


def configure(
    level: Literal["debug", "info", "warning", "error"] = "info",
    form: Literal["auto", "console", "json"] = "auto",
) -> None:
    """Send events of at least ``level`` to standard error; ``auto`` asks whether that is a terminal."""
    readable = form == "console" or (form == "auto" and sys.stderr.isatty())
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)  # others show locals
        if readable
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S" if readable else "iso", utc=not readable),
            structlog.processors.ExceptionRenderer() if not readable else _harmless,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    set_on_retry_hooks([_tell_of_retry])


def _tell_of_retry(details: RetryDetails) -> None:
    if details.retry_num % RETRIES_PER_LINE == 1:
        so_far = {"vain_tries": details.retry_num} if details.retry_num > 1 else {}
        structlog.get_logger(__name__).warning("retrying", error=_reason(details.caused_by), **so_far)


def _reason(error: BaseException) -> str:
    """Return what an error of ours says; of others, which may quote what people said, only the kind."""
    kind = type(error)
    is_ours = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
    return (is_ours and str(error)) or kind.__name__


def _harmless(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Return values as Python writes them where they could draw on a terminal or begin a line of their own."""
    for name, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[name] = repr(value)
    return event
