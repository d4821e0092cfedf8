"""Log events: dotted names with fields, readable in a terminal and JSON otherwise; never what people said."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog


def configure(
    level: Literal["debug", "info", "warning", "error"] = "info",
    form: Literal["auto", "console", "json"] = "auto",
) -> None:
    """Send events of at least ``level`` to standard error; ``auto`` asks whether that is a terminal."""
    readable = form == "console" or (form == "auto" and sys.stderr.isatty())
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if readable else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S" if readable else "iso", utc=not readable),
            structlog.processors.ExceptionRenderer() if not readable else structlog.processors.StackInfoRenderer(),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
