"""When a model fails, the next analyst answers under its own name; a summary waits for a model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from context_builder.analysis.analyst import (
    Analyst,
    AnalystMessage,
    DomainResult,
    DraftPoint,
    KeywordResult,
    SummaryRequest,
    SummaryResult,
)
from context_builder.analysis.fallback import FallbackAnalyst
from context_builder.errors import AnalystError, AnalystUnavailable, ReplyInvalid
from tests.session.saying import quoting

MESSAGES = [AnalystMessage(1, "Alice", "How does DNA replication work?")]
REQUEST = SummaryRequest(MESSAGES)


class Scripted(Analyst):
    """An analyst that answers with its name, or fails while ``error`` is set."""

    name = ""

    def __init__(self, name: str, error: AnalystError | None = None) -> None:
        self.name = name
        self.error = error
        self.calls = 0
        self.closed = False

    def _asked(self) -> None:
        self.calls += 1
        if self.error:
            raise self.error

    async def extract_keywords(self, messages: Sequence[AnalystMessage]) -> KeywordResult:
        self._asked()
        return KeywordResult((("DNA",),) * len(messages), self.name)

    async def infer_domains(self, messages: Sequence[AnalystMessage]) -> DomainResult:
        self._asked()
        return DomainResult({}, (), self.name)

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        self._asked()
        return SummaryResult((DraftPoint("Alice asked.", quoting(1)),), self.name)

    async def close(self) -> None:
        self.closed = True


def down() -> AnalystUnavailable:
    return AnalystUnavailable("down", retry_after=7.0)


async def test_while_the_model_answers_nobody_else_is_asked() -> None:
    text = Scripted("text")
    analyst: Analyst = FallbackAnalyst(Scripted("openai"), text)
    assert analyst.name == "openai"
    assert (await analyst.extract_keywords(MESSAGES)).analyst == "openai"
    assert (await analyst.infer_domains(MESSAGES)).analyst == "openai"
    assert (await analyst.summarize(REQUEST)).analyst == "openai"
    assert text.calls == 0


@pytest.mark.parametrize("error", [down(), ReplyInvalid("empty")])
async def test_keywords_and_domains_fall_back_under_the_others_name(error: AnalystError) -> None:
    analyst = FallbackAnalyst(Scripted("openai", error), Scripted("text"))
    assert (await analyst.extract_keywords(MESSAGES)).analyst == "text"
    assert (await analyst.infer_domains(MESSAGES)).analyst == "text"


async def test_a_summary_waits_for_the_model() -> None:
    error = down()
    analyst = FallbackAnalyst(Scripted("openai", error), Scripted("text"))
    with pytest.raises(AnalystUnavailable) as raised:
        await analyst.summarize(REQUEST)
    assert raised.value is error


async def test_a_model_that_keeps_failing_is_not_asked_until_the_pause_is_over() -> None:
    seconds = 0.0
    openai = Scripted("openai", down())
    analyst = FallbackAnalyst(openai, Scripted("text"), monotonic=lambda: seconds)
    for _ in range(10):
        assert (await analyst.extract_keywords(MESSAGES)).analyst == "text"
    assert openai.calls == 3
    seconds, openai.error = 15.0, None
    assert (await analyst.extract_keywords(MESSAGES)).analyst == "openai"


async def test_a_chain_goes_down_one_link_at_a_time() -> None:
    openai, local, text = Scripted("openai", down()), Scripted("local"), Scripted("text")
    chain = FallbackAnalyst(openai, FallbackAnalyst(local, text))
    assert (await chain.extract_keywords(MESSAGES)).analyst == "local"
    assert (await chain.summarize(REQUEST)).analyst == "local"
    local.error = ReplyInvalid("empty")
    assert (await chain.infer_domains(MESSAGES)).analyst == "text"
    with pytest.raises(AnalystUnavailable):
        await chain.summarize(REQUEST)


async def test_closing_closes_every_link() -> None:
    links = [Scripted(name) for name in ("openai", "local", "text")]
    await FallbackAnalyst(links[0], FallbackAnalyst(links[1], links[2])).close()
    assert all(link.closed for link in links)
