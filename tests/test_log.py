"""What the log says of tries in vain."""

from __future__ import annotations

import pytest
from stamina.instrumentation import RetryDetails
from structlog.testing import capture_logs

from context_builder.errors import StoreUnavailable
from context_builder.log import _tell_of_retry


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
