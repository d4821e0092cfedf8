"""Spans are sent to a collector by OpenTelemetry's SDK, over HTTP (OTLP), where one is set."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import structlog

from context_builder import __version__
from context_builder.errors import SettingError, require_extra
from context_builder.settings.settings import Settings

log = structlog.get_logger(__name__)

PATIENCE: Final = 2.0
"""Seconds in which a collector has to take spans; in the end a command waits for twice as long at most."""

MOST_SPANS: Final = 2048
"""Spans that wait to be sent, all at once."""


class _LogOnce(logging.Handler):
    """Logs once that spans cannot be sent; the SDK would report each attempt, in a format of its own."""

    _tells = True

    def emit(self, record: logging.LogRecord) -> None:
        if self._tells and record.levelno >= logging.ERROR:
            self._tells = False
            log.warning("tracing.failed", hint="the collector does not take spans in time; they are dropped")


@asynccontextmanager
async def sending_spans(settings: Settings, what: str) -> AsyncIterator[None]:
    """Send the spans of this process, which does ``what``, to the collector that the settings name, if they name one.

    Spans that are left in the end are sent before this returns. A collector that is away holds up nothing.
    Raises :class:`~context_builder.errors.MissingExtra`, and :class:`~context_builder.errors.SettingError` for a wrong
    setting of OpenTelemetry's own.
    """
    if (endpoint := settings.process.otlp_endpoint) is None:
        yield
        return
    require_extra("tracing", "opentelemetry.exporter", "OTEL_EXPORTER_OTLP_ENDPOINT")
    try:  # some settings are read as soon as it is imported
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import set_tracer_provider

        resource = Resource.create({SERVICE_NAME: f"context-builder {what}", SERVICE_VERSION: __version__})
        provider = TracerProvider(resource=resource)
        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=PATIENCE)
        processor = BatchSpanProcessor(exporter, max_queue_size=MOST_SPANS, max_export_batch_size=MOST_SPANS)
    except ValueError as error:  # of a setting that the SDK reads by itself, and names
        raise SettingError(f"OpenTelemetry: {error}") from None
    provider.add_span_processor(processor)
    set_tracer_provider(provider)
    its_log = logging.getLogger("opentelemetry")
    its_log.propagate = False
    its_log.addHandler(_LogOnce())
    try:
        yield
    finally:
        await asyncio.to_thread(provider.shutdown)
