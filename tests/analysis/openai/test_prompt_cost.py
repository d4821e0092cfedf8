"""What a call costs before anybody has said anything, and what a burst of messages costs in all."""

from __future__ import annotations

import pytest

from context_builder.analysis.analyst import SummaryRequest
from context_builder.analysis.openai import OpenAIAnalyst
from context_builder.analysis.openai.completion import prompt_tokens
from context_builder.tokens.counter import TokenCounter
from tests.analysis.openai.conversation import said
from tests.services.model_answers import task_of
from tests.services.model_server import FakeModel

COUNTER = TokenCounter("gpt-4o-mini")

TALK = (
    "How does DNA replication work?",
    "The helicase unwinds the double helix before anything is copied.",
    "Could machine learning predict the error rate of the polymerase?",
    "I think we should first agree on who may use the data.",
)


@pytest.mark.parametrize(("task", "most"), [("keywords", 80), ("domains", 225), ("summary", 290)])
async def test_a_call_costs_little_beside_the_messages(
    analyst: OpenAIAnalyst, model: FakeModel, task: str, most: int
) -> None:
    messages = said("How does DNA replication work?")
    await analyst.extract_keywords(messages)
    await analyst.infer_domains(messages)
    await analyst.summarize(SummaryRequest(messages))
    cost = {task_of(request): prompt_tokens(request, COUNTER.count) for request in model.requests}
    assert cost[task] <= most


async def test_a_burst_of_sixty_costs_sixty_tokens_a_message(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    messages = said(*(TALK * 15))
    for start in range(0, 60, 20):
        await analyst.extract_keywords(messages[start : start + 20])
    await analyst.infer_domains(messages[-10:])
    await analyst.summarize(SummaryRequest(messages))
    assert sum(prompt_tokens(request, COUNTER.count) for request in model.requests) / 60 <= 50
