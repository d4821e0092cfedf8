"""What a failing model becomes: one of two errors, after as many tries as are worth it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from starlette.responses import StreamingResponse

from context_builder.analysis.analyst import SummaryRequest
from context_builder.analysis.openai import Endpoint, OpenAIAnalyst
from context_builder.analysis.prompts import load_prompts
from context_builder.errors import AnalystUnavailable, ReplyInvalid
from tests.analysis.conftest import MakeAnalyst
from tests.analysis.openai.conversation import TEXTS, said
from tests.services.model_server import UNANSWERED, WRONG_ANSWERS, FakeModel, Fault, ModelServer
from tests.services.waiting import PATIENCE

MESSAGES = said(*TEXTS)


@pytest.mark.parametrize("fault", [*UNANSWERED, *WRONG_ANSWERS])
async def test_a_fault_that_passes_is_tried_again(analyst: OpenAIAnalyst, model: FakeModel, fault: Fault) -> None:
    model.script.extend([fault, fault])
    reading = await analyst.summarize(SummaryRequest(MESSAGES))
    assert reading.points
    assert len(model.requests) == 3


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        (Fault.ERROR_500, "failed \\(500\\)"),
        (Fault.RATE_LIMIT, "rate limit"),
        (Fault.DROP, "cannot be reached; check OPENAI_BASE_URL"),
    ],
)
async def test_a_model_that_keeps_failing_is_unavailable(
    analyst: OpenAIAnalyst, model: FakeModel, fault: Fault, hint: str
) -> None:
    model.fault = fault
    with pytest.raises(AnalystUnavailable, match=hint):
        await analyst.extract_keywords(MESSAGES)
    assert len(model.requests) == 3


@pytest.mark.parametrize("fault", WRONG_ANSWERS)
async def test_a_model_that_keeps_answering_wrongly_is_invalid(
    analyst: OpenAIAnalyst, model: FakeModel, fault: Fault
) -> None:
    model.fault = fault
    for ask in (analyst.extract_keywords(MESSAGES), analyst.infer_domains(MESSAGES)):
        with pytest.raises(ReplyInvalid):
            await ask
    with pytest.raises(ReplyInvalid):
        await analyst.summarize(SummaryRequest(MESSAGES))


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        (Fault.UNAUTHORIZED, "OPENAI_API_KEY"),
        (Fault.UNKNOWN_MODEL, "does not know gpt-4o-mini"),
        (Fault.NO_QUOTA, "plan and billing"),
    ],
)
async def test_what_another_try_cannot_change_is_not_tried_again(
    analyst: OpenAIAnalyst, model: FakeModel, fault: Fault, hint: str
) -> None:
    model.fault = fault
    with pytest.raises(AnalystUnavailable, match=hint) as raised:
        await analyst.infer_domains(MESSAGES)
    assert len(model.requests) == 1
    assert "sk-secret" not in str(raised.value)


async def test_a_model_that_hangs_is_given_up_on_in_time(make_analyst: MakeAnalyst, model: FakeModel) -> None:
    model.fault = Fault.HANG
    analyst = make_analyst(timeout=0.2, attempts=2)
    begun = time.monotonic()
    with pytest.raises(AnalystUnavailable, match="did not answer"):
        await analyst.infer_domains(MESSAGES)
    assert time.monotonic() - begun >= 0.4
    assert len(model.requests) == 2


async def test_a_server_that_is_gone_is_unavailable_until_it_is_back(
    analyst: OpenAIAnalyst, model_server: ModelServer
) -> None:
    model_server.stop()
    try:
        with pytest.raises(AnalystUnavailable, match="cannot be reached"):
            await analyst.infer_domains(MESSAGES)
    finally:
        model_server.start()
    assert (await analyst.infer_domains(MESSAGES)).domains


async def test_the_wait_that_a_server_asks_for_is_kept(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    model.retry_after = "0.3"
    model.script.append(Fault.RATE_LIMIT)
    begun = time.monotonic()
    await analyst.infer_domains(MESSAGES)
    assert time.monotonic() - begun >= 0.3


async def test_a_wait_too_long_is_left_to_the_caller(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    model.retry_after = "3600"
    model.fault = Fault.RATE_LIMIT
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(AnalystUnavailable) as raised:
            await analyst.infer_domains(MESSAGES)
    assert raised.value.retry_after == 3600
    assert len(model.requests) == 1


async def test_the_tokens_of_invalid_replies_are_counted_too(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    model.script.append(Fault.EMPTY)
    usage = (await analyst.infer_domains(MESSAGES)).usage
    assert usage.calls == 2


async def test_points_of_a_reply_without_any_to_accept_are_counted(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    points = [{"kind": "claim", "text": "Out of nothing.", "cites": cites, "replaces": 0} for cites in ([], [99])]
    model.replies.append({"points": points, "chatter": False})
    assert (await analyst.summarize(SummaryRequest(MESSAGES))).usage.rejected == 2
    model.replies.extend([{"points": points, "chatter": False}] * 3)
    with pytest.raises(ReplyInvalid) as raised:
        await analyst.summarize(SummaryRequest(MESSAGES))
    assert raised.value.usage
    assert raised.value.usage.rejected == 6


async def test_a_key_that_no_header_can_hold_is_refused(model_server: ModelServer) -> None:
    analyst = OpenAIAnalyst(Endpoint("sk-\u2026\ud800", model_server.base_url), load_prompts())
    with pytest.raises(AnalystUnavailable, match="cannot be asked: UnicodeEncodeError; check OPENAI_API_KEY"):
        await analyst.infer_domains(MESSAGES)
    await analyst.close()


async def test_an_answer_that_never_ends_is_given_up_on_in_time(make_analyst: MakeAnalyst, model: FakeModel) -> None:
    async def drip() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.05)

    model.verbatim.append(StreamingResponse(drip(), media_type="application/json"))
    with pytest.raises(AnalystUnavailable, match="did not answer"):
        await make_analyst(timeout=0.2, attempts=1).infer_domains(MESSAGES)
