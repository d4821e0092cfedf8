"""Calls are priced, and held against the budget before they are made."""

from __future__ import annotations

import pytest

from context_builder.analysis.analyst import SummaryRequest
from context_builder.analysis.openai import OpenAIAnalyst
from context_builder.costs import Budget
from context_builder.errors import AnalystUnavailable, OverBudget
from tests.analysis.conftest import MakeAnalyst
from tests.analysis.openai.conversation import TEXTS, said
from tests.services.model_server import FakeModel, Fault, ModelServer

MESSAGES = said(*TEXTS)


@pytest.fixture
def budget() -> Budget:
    return Budget(1.0, now=lambda: 0.0)


async def test_usage_is_priced_by_the_list(analyst: OpenAIAnalyst) -> None:
    usage = (await analyst.infer_domains(MESSAGES)).usage
    fresh = usage.prompt_tokens - usage.cached_tokens
    dollars = (fresh * 0.15 + usage.cached_tokens * 0.075 + usage.completion_tokens * 0.60) / 1e6
    assert usage.dollars == pytest.approx(dollars)


async def test_what_was_set_aside_is_replaced_by_the_cost(make_analyst: MakeAnalyst, budget: Budget) -> None:
    usage = (await make_analyst(budget=budget).infer_domains(MESSAGES)).usage
    assert budget.used == pytest.approx(usage.dollars, abs=1e-8)


async def test_beyond_the_budget_no_call_is_made(make_analyst: MakeAnalyst, model: FakeModel, budget: Budget) -> None:
    with budget.hold("summary", 0.995), pytest.raises(OverBudget):
        await make_analyst(budget=budget).summarize(SummaryRequest(MESSAGES))  # its worst case is a cent
    assert model.requests == []


async def test_another_try_must_fit_the_budget_too(make_analyst: MakeAnalyst, model: FakeModel) -> None:
    budget = Budget(0.08, now=lambda: 0.0)
    model.fault = Fault.HANG
    with pytest.raises(OverBudget):
        await make_analyst(budget=budget, timeout=0.1).summarize(SummaryRequest(MESSAGES))
    assert len(model.requests) == 2


@pytest.mark.parametrize("fault", [Fault.ERROR_500, Fault.UNAUTHORIZED])
async def test_a_refused_request_costs_nothing(
    make_analyst: MakeAnalyst, model: FakeModel, budget: Budget, fault: Fault
) -> None:
    model.fault = fault
    with pytest.raises(AnalystUnavailable):
        await make_analyst(budget=budget).infer_domains(MESSAGES)
    assert budget.used == 0


async def test_a_server_that_is_not_there_costs_nothing(
    make_analyst: MakeAnalyst, model_server: ModelServer, budget: Budget
) -> None:
    analyst = make_analyst(budget=budget)
    model_server.stop()
    try:
        with pytest.raises(AnalystUnavailable):
            await analyst.infer_domains(MESSAGES)
    finally:
        model_server.start()
    assert budget.used == 0


@pytest.mark.parametrize("fault", [Fault.HANG, Fault.DROP])
async def test_a_call_that_may_have_been_answered_counts_in_full(
    make_analyst: MakeAnalyst, model: FakeModel, budget: Budget, fault: Fault
) -> None:
    model.fault = fault
    with pytest.raises(AnalystUnavailable):
        await make_analyst(budget=budget, timeout=0.1, attempts=1).infer_domains(MESSAGES)
    assert 0.0002 < budget.used < 0.0005
