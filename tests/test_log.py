"""What the log says of tries in vain, and of errors."""

from __future__ import annotations

import subprocess
import sys
from typing import Literal

import pytest
import structlog
from stamina.instrumentation import RetryDetails
from structlog.testing import capture_logs

from context_builder.errors import StoreUnavailable
from context_builder.log import _tell_of_retry, configure


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (StoreUnavailable("Redis is away"), "Redis is away"),
        (StoreUnavailable(), "StoreUnavailable"),
        (ValueError("Alice said that she is ill"), "ValueError"),
    ],
)
def test_a_retry_names_the_kind_of_error_and_quotes_only_ours(error: Exception, told: str) -> None:
    with capture_logs() as logs:
        _tell_of_retry(RetryDetails("call", (), {}, retry_num=1, wait_for=0, waited_so_far=0, caused_by=error))
    assert [each["error"] for each in logs] == [told]


@pytest.mark.parametrize("form", ["console", "json"])
def test_a_traceback_says_where_and_quotes_only_errors_of_ours(
    capsys: pytest.CaptureFixture[str], form: Literal["console", "json"]
) -> None:
    said = "Alice said that she is ill"
    configure("info", form)
    try:
        try:
            int(said)
        except ValueError as error:
            raise StoreUnavailable("Redis is away") from error
    except StoreUnavailable:
        structlog.get_logger("x").exception("it.failed")
    finally:
        structlog.reset_defaults()
    told = capsys.readouterr().err
    assert "Alice" not in told
    for expected in ("it.failed", "ValueError", "StoreUnavailable: Redis is away", "test_log.py"):
        assert expected in told


LIBRARY = """
import asyncio, logging, sys
{before}
from context_builder import ContextBuilder
from context_builder.errors import DatabaseUnavailable
from context_builder.testing import InMemoryStore

async def main():
    store = InMemoryStore()
    store.failure = DatabaseUnavailable("away")
    await ContextBuilder(store=store).build_for_turn({{"tenant_id": "lab", "user_message": "Hello"}})

asyncio.run(main())
"""


def as_library(before: str) -> subprocess.CompletedProcess[str]:
    code = LIBRARY.format(before=before)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


@pytest.mark.engines
def test_as_a_library_nothing_is_printed() -> None:
    done = as_library("")
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.engines
def test_a_program_that_shows_logging_shows_events_too() -> None:
    done = as_library("logging.basicConfig(stream=sys.stderr)")
    assert done.stdout == ""
    assert "WARNING:context_builder.assembly.health:event=memory.failed" in done.stderr


@pytest.mark.engines
def test_a_program_that_configures_structlog_keeps_its_own() -> None:
    done = as_library("import structlog; structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))")
    assert done.stdout == ""
    assert "memory.failed" in done.stderr
