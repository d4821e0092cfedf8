"""Spans are sent to a collector by OpenTelemetry's SDK, over HTTP (OTLP), where one is set."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from context_builder import __version__
from context_builder.extras import require_extra
from context_builder.settings.settings import Settings


@asynccontextmanager
async def sending_spans(settings: Settings, what: str) -> AsyncIterator[None]:
    """Send the spans of this process, which does ``what``, to the collector that the settings name, if they name one.

    Spans that are left in the end are sent before this returns. A collector that is away holds up nothing.
    Raises :class:`~context_builder.errors.MissingExtra`.
    """
    if (endpoint := settings.process.otlp_endpoint) is None:
        yield
        return
    require_extra("tracing", "opentelemetry.exporter", "OTEL_EXPORTER_OTLP_ENDPOINT")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace import set_tracer_provider

    resource = Resource.create({SERVICE_NAME: f"context-builder {what}", SERVICE_VERSION: __version__})
    provider = TracerProvider(resource=resource)
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    set_tracer_provider(provider)
    try:
        yield
    finally:
        await asyncio.to_thread(provider.shutdown)
