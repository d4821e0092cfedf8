"""OpenTelemetry spans, where a tracer is set up: by ``wiring.tracing``, or by the program that uses this package.

A span names what was done, for how long and in which session; never what somebody said, nor a credential. An error is
told by its class alone, because its text may quote what was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, Final

TRACEPARENT: Final = "traceparent"
"""Header of W3C Trace Context, and field of a message, that names the span a piece of work belongs to."""

_PARENT: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


@cache
def _api() -> Any:
    """Return ``opentelemetry.trace``; None where the extra ``tracing`` is not installed."""
    try:
        return import_module("opentelemetry.trace")
    except ImportError:
        return None


def parent_of(value: object) -> str:
    """Return a valid ``traceparent``; empty for anything else."""
    return value if isinstance(value, str) and _PARENT.fullmatch(value) else ""


@contextmanager
def span(
    name: str, attributes: Mapping[str, str | int] | None = None, *, parent: str = "", kind: str = "INTERNAL"
) -> Iterator[Any]:
    """Open a span around a piece of work, which ``parent`` (a ``traceparent``) may have begun elsewhere.

    ``kind`` is that of OpenTelemetry: ``SERVER``, ``PRODUCER``, … Yields the span; None without OpenTelemetry.
    """
    api = _api()
    if api is None:
        yield None
        return
    with _tracer().start_as_current_span(
        name,
        context=_context_of(parent),
        kind=api.SpanKind[kind],
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield current
        except BaseException as error:
            current.set_attribute("error.type", type(error).__qualname__)
            current.set_status(api.StatusCode.ERROR)
            raise


def traceparent() -> str:
    """Return the ``traceparent`` of the current span; empty where nothing is recorded."""
    api = _api()
    if api is None or not api.get_current_span().is_recording():
        return ""
    context = api.get_current_span().get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def note_span(name: str, attributes: Mapping[str, str | int], *, parent: str, begin: float, end: float) -> None:
    """Record what was done from epoch second ``begin`` to ``end`` for the span that ``parent`` names."""
    api = _api()
    if api is None or not parent:
        return
    done = _tracer().start_span(
        name,
        context=_context_of(parent),
        kind=api.SpanKind.CONSUMER,
        attributes=attributes,
        start_time=int(begin * 1e9),
    )
    done.end(int(end * 1e9))


def _tracer() -> Any:
    return _api().get_tracer("context_builder")


def _context_of(parent: str) -> Any:
    """Return the context that a ``traceparent`` names; None, which is the current one, where it names none."""
    if not (valid := parent_of(parent)):
        return None
    propagation = import_module("opentelemetry.trace.propagation.tracecontext")
    return propagation.TraceContextTextMapPropagator().extract({TRACEPARENT: valid})
