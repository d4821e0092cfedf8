"""What a session cost, as people and programs read it."""

from __future__ import annotations

import io
from dataclasses import replace

import orjson
import pytest
from redis.asyncio import Redis
from rich.console import Console

from context_builder.cli.cost import bill, cost_of
from context_builder.cli.view.published import Published
from context_builder.cli.view.status import dollars, figures
from context_builder.costs import Usage
from context_builder.errors import StoreError
from context_builder.session.client import JsonObject, SessionClient
from context_builder.session.conversation.tasks import UsageTotals
from tests.cli.samples import NOW, sample, sample_state


def spent(*more: Usage) -> JsonObject:
    spending = UsageTotals()
    spending.add("keywords", Usage("gpt-4o-mini", 12_000, 4_000, 900, 40, 0.0021), NOW)
    spending.add("summary", Usage("gpt-4o", 3_000, 0, 800, 2, 1.5), NOW)
    for usage in more:
        spending.add("domains", usage, NOW)
    return spending.wire()


def shown(cost: JsonObject) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(bill(cost))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_the_bill_has_a_line_a_task_and_a_sum() -> None:
    lines = {line.split()[0]: line.split()[1:] for line in shown(spent()).splitlines()}
    assert lines["keywords"] == ["40", "12,000", "4,000", "900", "$0.0021"]
    assert lines["domains"] == ["0", "0", "0", "0", "$0.00"]
    assert lines["all"] == ["42", "15,000", "4,000", "1,700", "$1.50"]


def test_a_session_that_called_no_model_has_no_bill() -> None:
    assert shown(UsageTotals().wire()).strip() == "No model was called yet: plain text analysis costs nothing."


def test_models_without_a_price_are_pointed_out() -> None:
    assert "LLM_PRICES" not in shown(spent())
    assert "mystery, whose price is not known" in shown(spent(Usage("mystery", 10, 0, 1, 1, unpriced=1)))


def test_the_view_shows_it_once_a_model_was_asked() -> None:
    def footer(state: JsonObject) -> str:
        return " ".join(figure.plain for figure in figures(Published(replace(sample(), state=state)), NOW, None))

    assert "cost $1.50, 16,700 tokens" in footer({**sample_state(), "cost": spent()})
    assert "cost" not in footer({**sample_state(), "cost": UsageTotals().wire()})
    assert "cost" not in footer({**sample_state(), "cost": ["nonsense"]})


@pytest.mark.parametrize(("amount", "told"), [(0.0, "$0.00"), (0.00421, "$0.0042"), (1234.5, "$1,234.50")])
def test_dollars_have_as_many_digits_as_tell_something(amount: float, told: str) -> None:
    assert dollars(amount) == told


@pytest.mark.engines
async def test_it_is_known_as_long_as_the_checkpoint(redis: Redis) -> None:
    client = SessionClient(redis, "monday")
    with pytest.raises(StoreError, match="session monday has cost nothing: it never ran"):
        await cost_of(client)
    await redis.hset("context_builder:monday:checkpoint", "head", orjson.dumps({"counters": {"cost": spent()}}))
    assert await cost_of(client) == spent()
