"""What embeddings cost is counted, and held within the hour's budget."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from openai import AsyncOpenAI

from context_builder.costs import Budget, Price, Prices, collected_usage
from context_builder.errors import DatabaseUnavailable
from context_builder.memory.openai_embedder import OpenAIEmbedder
from context_builder.memory.options import EmbeddingOptions

PRICES = Prices({"e5": Price(1_000_000.0, 0.0, 0.0)})
"""A dollar a token."""


class Priced(OpenAIEmbedder):
    """Asks a server that answers ``status`` and ``usage``."""

    def __init__(self, usage: Any, budget: Budget | None = None, status: int = 200) -> None:
        super().__init__(EmbeddingOptions("e5"), PRICES, budget)
        self._usage = usage
        self._status = status
        self.asked = 0

    def _new_client(self) -> AsyncOpenAI:
        transport = httpx.MockTransport(self._answer)
        return AsyncOpenAI(api_key="none", max_retries=0, http_client=httpx.AsyncClient(transport=transport))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        data = [{"object": "embedding", "index": 0, "embedding": [1.0]}]
        return httpx.Response(self._status, json={"object": "list", "data": data, "usage": self._usage})


@pytest.fixture
def budget() -> Budget:
    return Budget(10.0)


async def test_what_the_server_counted_is_charged(budget: Budget) -> None:
    embedder = Priced({"prompt_tokens": 2, "total_tokens": 2}, budget)
    with collected_usage() as usages:
        await embedder.embed(["tides"])
        await embedder.embed_query("moons")
    assert [(usage.model, usage.calls, usage.prompt_tokens, usage.dollars) for usage in usages] == [
        ("e5", 1, 2, 2.0)
    ] * 2
    assert budget.used == pytest.approx(4.0)


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": -1}, {"prompt_tokens": 10**23}, {"prompt_tokens": "7"}, 7]
)
async def test_where_nobody_can_tell_the_worst_case_stays_spent(budget: Budget, usage: Any) -> None:
    embedder = Priced(usage, budget)
    with collected_usage() as usages:
        await embedder.embed(["tides"])
    assert [(usage.calls, usage.prompt_tokens) for usage in usages] == [(1, 0)]
    assert budget.used == pytest.approx(len("tides"))


async def test_a_call_over_the_budget_is_not_made_and_a_refused_one_costs_nothing(budget: Budget) -> None:
    embedder = Priced({"prompt_tokens": 6}, budget)
    await embedder.embed(["tides"])
    with pytest.raises(DatabaseUnavailable, match="embeddings: this hour's budget is used up"):
        await embedder.embed(["tides"])
    assert embedder.asked == 1
    refusing = Priced(None, Budget(10.0), status=500)
    with pytest.raises(DatabaseUnavailable):
        await refusing.embed(["tides"])
    assert refusing._budget is not None
    assert refusing._budget.used == 0.0
