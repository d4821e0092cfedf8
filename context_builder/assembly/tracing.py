"""An OpenTelemetry span a phase, when the API is installed; nothing otherwise."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any


@cache
def _tracer() -> Any:
    try:
        return import_module("opentelemetry.trace").get_tracer("context_builder.assembly")
    except ImportError:
        return None


def span(phase: str) -> AbstractContextManager[object]:
    """The span ``context.<phase>`` around a piece of work."""
    tracer = _tracer()
    return nullcontext() if tracer is None else tracer.start_as_current_span(f"context.{phase}")
