"""OpenTelemetry spans, where a tracer is set up: by ``wiring.tracing``, or by the program that uses this package.

A span names what was done, for how long and in which session; never what somebody said, nor a credential. An error is
told by its class alone, because its text may quote what was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from secrets import token_hex
from typing import Any, Final

TRACEPARENT: Final = "traceparent"
"""Header of W3C Trace Context, and field of a message, that names the span a piece of work belongs to."""

_LONGEST: Final = 512
_WRITTEN: Final = re.compile(
    r"(?:00|((?!00|ff)[0-9a-f]{2}))-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?(1)(?:-.*)?)"
)
"""A version after 00 may have more behind the flags; version ff is invalid."""


@dataclass(frozen=True, slots=True)
class TraceContext:
    """Identifies a span and the trace that it is part of, in hexadecimal, as W3C Trace Context does."""

    trace_id: str
    span_id: str
    flags: str = "01"

    @classmethod
    def new(cls) -> TraceContext:
        """Return the first span of a new trace."""
        return cls(token_hex(16), token_hex(8))

    @classmethod
    def parse(cls, traceparent: object) -> TraceContext | None:
        """Return the span that a ``traceparent`` of any version names; None for anything that is not valid."""
        if not isinstance(traceparent, str) or len(traceparent) > _LONGEST:
            return None
        found = _WRITTEN.fullmatch(traceparent)
        return cls(found[2], found[3], found[4]) if found else None

    @property
    def traceparent(self) -> str:
        """Return the header, of version 00, that hands the trace on."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"

    def child(self) -> TraceContext:
        """Return another span of the same trace."""
        return TraceContext(self.trace_id, token_hex(8), self.flags)


CURRENT_TRACE: ContextVar[TraceContext | None] = ContextVar("trace", default=None)


def current_trace() -> TraceContext:
    """Return the trace of the call that is being answered; outside of any, a new one."""
    return CURRENT_TRACE.get() or TraceContext.new()


@cache
def _api() -> Any:
    """Return ``opentelemetry.trace``; None where the extra ``tracing`` is not installed."""
    try:
        return import_module("opentelemetry.trace")
    except ImportError:
        return None


def span(
    name: str,
    attributes: Mapping[str, str | int] | None = None,
    *,
    parent: TraceContext | None = None,
    kind: str = "INTERNAL",
) -> AbstractContextManager[Any]:
    """Open a span around a piece of work, which ``parent`` may have begun elsewhere.

    ``kind`` is that of OpenTelemetry: ``SERVER``, ``PRODUCER``, … Yields the span; None without OpenTelemetry, or where
    nobody has set it up.
    """
    api = _api()
    if api is None or isinstance(api.get_tracer_provider(), api.ProxyTracerProvider):
        return nullcontext()
    return _opened(api, name, attributes, parent, kind)


@contextmanager
def _opened(
    api: Any, name: str, attributes: Mapping[str, str | int] | None, parent: TraceContext | None, kind: str
) -> Iterator[Any]:
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


def recorded_span() -> TraceContext | None:
    """Return the current span; None where nothing is recorded."""
    api = _api()
    if api is None or not api.get_current_span().is_recording():
        return None
    context = api.get_current_span().get_span_context()
    return TraceContext(f"{context.trace_id:032x}", f"{context.span_id:016x}", f"{int(context.trace_flags):02x}")


def note_span(
    name: str, attributes: Mapping[str, str | int], *, parent: TraceContext, begin: float, end: float
) -> None:
    """Record what was done from epoch second ``begin`` to ``end`` as a part of ``parent``."""
    api = _api()
    if api is None:
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


def _context_of(parent: TraceContext | None) -> Any:
    """Return OpenTelemetry's context of ``parent``; None, which is the current one, without a parent."""
    if parent is None:
        return None
    propagation = import_module("opentelemetry.trace.propagation.tracecontext")
    return propagation.TraceContextTextMapPropagator().extract({TRACEPARENT: parent.traceparent})
