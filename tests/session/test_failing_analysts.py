"""An analyst may be anybody's: however it fails, the session goes on, and asks it again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from context_builder.errors import AnalystUnavailable
from context_builder.testing import StubAnalyst
from tests.services.waiting import wait_until
from tests.session.live import Live
from tests.session.saying import TEXT

pytestmark = pytest.mark.engines


class FailingAnalyst(StubAnalyst):
    """Fails as ``fail`` says for as long as that is set."""

    def __init__(self, fail: Callable[[], BaseException]) -> None:
        super().__init__()
        self.fail: Callable[[], BaseException] | None = fail

    async def _answer(self) -> None:
        await super()._answer()
        if self.fail is not None:
            raise self.fail()


@pytest.mark.parametrize(
    "fail",
    [
        lambda: KeyError(TEXT),
        lambda: RecursionError(TEXT),
        lambda: ExceptionGroup(TEXT, [ValueError(TEXT)]),
        lambda: BaseExceptionGroup(TEXT, [asyncio.CancelledError()]),
        lambda: asyncio.CancelledError(),
    ],
)
async def test_a_session_survives_and_asks_again(live: Live, fail: Callable[[], BaseException]) -> None:
    analyst = live.analyst = FailingAnalyst(fail)
    with capture_logs() as logs:
        await live.start(domain_messages=1)
        await live.say(1)
        await live.shows(1)
        live.clock.advance(121)
        await live.fails("keywords", "domains", "summary")
    assert _tasks(logs) == {"keywords", "domains", "summary"}
    assert TEXT not in str(logs)
    analyst.fail = None
    live.clock.advance(31)
    await live.until("it is summarized", message_count=1)
    assert live.analyst.keyword_calls


async def test_a_model_that_fails_again_and_again_in_one_way_is_told_once(live: Live) -> None:
    analyst = live.analyst = FailingAnalyst(lambda: AnalystUnavailable("away"))
    with capture_logs() as logs:
        await live.start(summary_retry=1)
        await live.say(1)
        await live.shows(1)
        live.clock.advance(121)

        def asked_four_times() -> bool:
            live.clock.advance(2)  # a wait begins when the failure has been noted, which may be after the clock was set
            return len(analyst.summary_calls) >= 4

        await wait_until(asked_four_times, "it was asked four times")
    told = [entry for entry in logs if entry["event"] == "analysis.failed" and entry["task"] == "summary"]
    assert len(told) == 1


def _tasks(logs: list[dict[str, object]]) -> set[object]:
    return {entry["task"] for entry in logs if entry["event"] == "analysis.failed"}
