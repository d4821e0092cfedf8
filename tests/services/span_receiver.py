"""A real HTTP server that takes OpenTelemetry's protocol (OTLP) as a collector does, and keeps what it was sent."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from context_builder.engines.engine import LOOPBACK


@dataclass(frozen=True)
class Span:
    """A span as it was sent; ids are hexadecimal, times epoch nanoseconds."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    begin: int
    end: int
    attributes: Mapping[str, str]


@dataclass
class SpanReceiver:
    """``url`` is that of the collector; ``raw`` is all that was sent, as bytes."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    raw: bytes = b""

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def take(self, body: bytes) -> None:
        self.raw += body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = next(one.value.string_value for one in resource.resource.attributes if one.key == "service.name")
            for scope in resource.scope_spans:
                for one in scope.spans:
                    told = {each.key: each.value.string_value or str(each.value.int_value) for each in one.attributes}
                    ids = one.trace_id.hex(), one.span_id.hex(), one.parent_span_id.hex()
                    self.spans.append(
                        Span(service, one.name, *ids, one.start_time_unix_nano, one.end_time_unix_nano, told)
                    )


@contextmanager
def receiving_spans() -> Iterator[SpanReceiver]:
    """A collector on a free loopback port."""
    receiver = SpanReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.take(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    receiver.url = f"http://{LOOPBACK}:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
