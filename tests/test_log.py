"""What the log says of tries in vain, and of errors."""

from __future__ import annotations

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
