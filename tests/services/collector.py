"""A real OpenTelemetry collector: Rotel, from its wheel. It prints every span, and passes all on to a receiver."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import httpx

from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.storage.bounded_http import trusted_authorities
from tests.services.waiting import PATIENCE


def _program() -> Path | None:
    found = find_spec("rotel")
    return Path(found.origin).with_name("rotel-agent") if found and found.origin else None


PROGRAM = _program()
"""None where the wheel is not installed."""


@contextmanager
def collecting_spans(receiver_url: str, output: Path) -> Iterator[str]:
    """Run the collector, which prints into ``output``; yields its URL."""
    assert PROGRAM is not None
    http, grpc = f"{LOOPBACK}:{free_port()}", f"{LOOPBACK}:{free_port()}"
    options = {
        "otlp-http-endpoint": http,
        "otlp-grpc-endpoint": grpc,
        "debug-log": "traces",
        "debug-log-verbosity": "detailed",
        "exporter": "otlp",
        "otlp-exporter-endpoint": receiver_url,
        "otlp-exporter-protocol": "http",
        "pid-file": str(output.with_suffix(".pid")),
    }
    with output.open("wb") as printed:
        process = subprocess.Popen(
            [PROGRAM, "start", *(f"--{name}={value}" for name, value in options.items())],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + PATIENCE
        while not _answers(http):
            assert process.poll() is None, output.read_text()
            assert time.monotonic() < deadline, output.read_text()
            time.sleep(0.02)
        yield f"http://{http}"
    finally:
        process.terminate()  # it passes on what it still has
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def _answers(address: str) -> bool:
    try:
        httpx.get(f"http://{address}/", verify=trusted_authorities())
    except httpx.TransportError:
        return False
    return True
