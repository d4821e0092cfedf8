"""A log never stops what it tells of: its reader may go away or stand still, and its disk may be full."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import orjson
import pytest

from context_builder import log_sink
from context_builder.log import LogSink


@pytest.fixture
def pipe() -> Iterator[tuple[int, io.TextIOWrapper]]:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", closefd=False), os.fdopen(writing, "w") as file:
        yield reading, file
    with suppress(OSError):  # a test closed it
        os.close(reading)


def tell(sink: LogSink, text: str) -> None:
    print(text, file=sink, flush=True)  # type: ignore[arg-type]


def test_a_reader_that_went_away_is_no_error(pipe: tuple[int, io.TextIOWrapper]) -> None:
    reading, file = pipe
    sink = LogSink(file)
    os.close(reading)
    tell(sink, "to nobody")


def test_what_a_reader_that_stands_still_does_not_take_waits_for_it(
    pipe: tuple[int, io.TextIOWrapper], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_sink, "MOST_LINES", 2_000)
    reading, file = pipe
    sink = LogSink(file)
    lines = [f"{number:099}" for number in range(5_000)]
    for line in lines:  # ten times what a pipe holds
        tell(sink, line)
    read = b""
    while b"log.lost" not in read:
        read += os.read(reading, 65_536)
    *told, lost = read.decode().splitlines()
    assert told == sorted(told)
    assert len(told) + orjson.loads(lost)["lines"] == len(lines)
    assert len(told) >= 2_000
    for thread in threading.enumerate():
        if thread.name == "log":
            thread.join(5)
    tell(sink, "at once")
    assert os.read(reading, 100) == b"at once\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full disk here")
def test_a_full_disk_is_no_error() -> None:
    with Path("/dev/full").open("w") as file:
        tell(LogSink(file), "nowhere")


def test_a_file_that_was_closed_is_no_error() -> None:
    file = io.StringIO()
    sink = LogSink(file)
    tell(sink, "said")
    assert file.getvalue() == "said\n"
    file.close()
    tell(sink, "nowhere")
