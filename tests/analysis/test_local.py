"""A small model between OpenAI and plain text analysis, asked for no more at once than it can do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest

from context_builder.analysis.analyst import Analyst, SummaryRequest, SummaryResult
from context_builder.analysis.fallback import FallbackAnalyst
from context_builder.analysis.local import PORTION, LocalAnalyst
from context_builder.domains import DOMAINS
from context_builder.errors import AnalystUnavailable, ReplyInvalid
from context_builder.settings.settings import load_settings
from context_builder.testing import StubAnalyst
from context_builder.wiring.app import App, open_app
from tests.analysis.openai.conversation import HOSTILE, TEXTS, said
from tests.services.model_server import Fault, ModelServer
from tests.services.redis_server import RedisServer
from tests.services.small_model import SmallModelServer

MESSAGES = said(*TEXTS)


@pytest.fixture
def stub() -> StubAnalyst:
    return StubAnalyst("local")


async def test_keywords_are_asked_for_one_message_at_a_time(stub: StubAnalyst) -> None:
    reading = await LocalAnalyst(stub).extract_keywords(MESSAGES)
    assert [list(call) for call in stub.keyword_calls] == [[message] for message in MESSAGES]
    assert reading == await StubAnalyst("local").extract_keywords(MESSAGES)


async def test_a_long_stretch_is_summarized_in_portions_and_nothing_is_skipped(stub: StubAnalyst) -> None:
    messages = said(*(f"message {n} " + "word " * 300 for n in range(10)))
    reading = await LocalAnalyst(stub).summarize(SummaryRequest(messages))
    assert [point.cites for point in reading.points] == [(message.id,) for message in messages]
    sizes = [sum(len(message.text) for message in call.messages) for call in stub.summary_calls]
    assert len(sizes) == 4
    assert max(sizes) <= PORTION


async def test_a_message_beyond_the_window_is_summarized_in_pieces(stub: StubAnalyst) -> None:
    reading = await LocalAnalyst(stub).summarize(SummaryRequest(said("é" * 25_000, "short enough")))
    pieces = [message for call in stub.summary_calls for message in call.messages]
    assert "".join(piece.text for piece in pieces if piece.id == 100) == "é" * 25_000
    assert max(len(piece.text.encode()) for piece in pieces) <= PORTION
    assert {cited for point in reading.points for cited in point.cites} == {100, 101}


async def test_a_failure_is_the_models(stub: StubAnalyst) -> None:
    stub.failure = AnalystUnavailable("away")
    for ask in (LocalAnalyst(stub).extract_keywords(MESSAGES), LocalAnalyst(stub).summarize(SummaryRequest(MESSAGES))):
        with pytest.raises(AnalystUnavailable, match="away"):
            await ask


@pytest.fixture
def servers() -> Iterator[tuple[ModelServer, ModelServer]]:
    """OpenAI's stand-in, and a local model's."""
    with ModelServer() as openai, ModelServer() as local:
        yield openai, local


@pytest.fixture
async def app(servers: tuple[ModelServer, ModelServer], redis_server: RedisServer) -> AsyncIterator[App]:
    openai, local = servers
    environ = {
        "REDIS_URL": redis_server.url,
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "OPENAI_BASE_URL": openai.base_url,
        "LOCAL_MODEL_URL": local.base_url,
        "LLM_ATTEMPTS": "1",
    }
    async with open_app(load_settings(environ, env_file=None)) as opened:
        yield opened


async def labels(analyst: Analyst) -> tuple[str, str]:
    """Who answers keywords and domains."""
    keywords = await analyst.extract_keywords(MESSAGES)
    assert len(keywords.keywords) == len(MESSAGES)
    return keywords.analyst, (await analyst.infer_domains(MESSAGES)).analyst


@pytest.mark.engines
async def test_openai_then_the_local_model_then_text(app: App, servers: tuple[ModelServer, ModelServer]) -> None:
    openai, local = servers
    analyst = app.dependencies.analyst
    request = SummaryRequest(MESSAGES)
    assert await labels(analyst) == ("openai", "openai")
    openai.model.fault = Fault.ERROR_500
    assert await labels(analyst) == ("local", "local")
    assert (await analyst.summarize(request)).analyst == "local"
    assert {asked["model"] for asked in local.model.requests} == {"local"}
    local.model.fault = Fault.ERROR_500
    assert await labels(analyst) == ("text", "text")
    with pytest.raises(AnalystUnavailable):  # text analysis does not sum up unasked
        await analyst.summarize(request)
    assert (await app.dependencies.last_resort.summarize(request)).analyst == "text"


@pytest.mark.engines
async def test_each_model_has_a_breaker_of_its_own(app: App, servers: tuple[ModelServer, ModelServer]) -> None:
    openai, local = servers
    openai.model.fault = Fault.ERROR_500
    for _ in range(5):
        assert await labels(app.dependencies.analyst) == ("local", "local")
    assert len(openai.model.requests) == 3
    assert len(local.model.requests) > 10


@pytest.mark.engines
async def test_the_local_model_works_alone(servers: tuple[ModelServer, ModelServer], redis_server: RedisServer) -> None:
    _, local = servers
    environ = {"REDIS_URL": redis_server.url, "LOCAL_MODEL_URL": local.base_url, "LLM_ATTEMPTS": "1"}
    async with open_app(load_settings(environ, env_file=None)) as app:
        assert isinstance(app.dependencies.analyst, FallbackAnalyst)
        assert app.model_is.what == f"the model server at 127.0.0.1:{local.port}; plain text analysis when it fails"
        assert await labels(app.dependencies.analyst) == ("local", "local")
        local.stop()
        try:
            with pytest.raises(AnalystUnavailable, match="check LOCAL_MODEL_URL"):
                await app.dependencies.analyst.summarize(SummaryRequest(MESSAGES))
        finally:
            local.start()


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.engines
async def test_a_real_small_model_answers_in_form_or_not_at_all(
    small_model: SmallModelServer, redis_server: RedisServer
) -> None:
    environ = {"REDIS_URL": redis_server.url, "LOCAL_MODEL_URL": small_model.base_url}
    messages = said(*TEXTS, HOSTILE)
    async with open_app(load_settings(environ, env_file=None)) as app:
        keywords = await app.dependencies.analyst.extract_keywords(messages)
        domains = await app.dependencies.analyst.infer_domains(messages)
        summary = SummaryResult((), "nobody")
        with suppress(ReplyInvalid):  # so small a model may well cite what it was not given
            summary = await app.dependencies.analyst.summarize(SummaryRequest(messages))
    assert (keywords.analyst, domains.analyst) == ("local", "local")
    assert len(keywords.keywords) == len(messages)
    assert set(domains.confidence) <= set(DOMAINS)
    assert {cited for point in summary.points for cited in point.cites} <= {message.id for message in messages}
