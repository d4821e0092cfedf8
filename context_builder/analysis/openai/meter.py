"""What the calls of a model cost: told afterwards, and held against the hour's budget before."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from context_builder import metrics
from context_builder.analysis.analyst import Usage
from context_builder.analysis.budget import Budget, Hold
from context_builder.analysis.prices import Prices
from context_builder.errors import OverBudget


class Meter:
    """Prices usage; with a ``budget``, lets through only calls whose worst case it can bear.

    ``count`` gives the tokens of a text in the models' encoding.
    """

    def __init__(self, prices: Prices, budget: Budget | None, count: Callable[[str], int]) -> None:
        self._prices = prices
        self._budget = budget
        self._count = count

    def load(self) -> None:
        """Load what counts tokens, if anything will be counted; from a thread."""
        if self._budget is not None:
            self._count("")

    def priced(self, usage: Usage) -> Usage:
        return self._prices.priced(usage)

    @contextmanager
    def hold(self, task: str, request: Mapping[str, Any], max_tokens: int) -> Iterator[Hold]:
        """Set aside what the call may cost at worst. Raises :class:`OverBudget` when there is too little left."""
        if self._budget is None:
            yield Hold(0.0)
            return
        price = self._prices.of(request["model"])
        worst = price.of(prompt_tokens(request, self._count), max_tokens)
        try:
            with self._budget.hold(task, worst) as held:
                yield held
        except OverBudget:
            metrics.OVER_BUDGET.labels(task).inc()
            raise


def prompt_tokens(request: Mapping[str, Any], count: Callable[[str], int]) -> int:
    """Tokens of a chat completion's prompt: its messages, the reply's schema, and the few that frame each message."""
    form = request["response_format"].get("json_schema")
    schema = json.dumps(form["schema"], separators=(",", ":")) if form else ""
    framing = 3 + 4 * len(request["messages"])
    return framing + count(schema) + sum(count(message["content"]) for message in request["messages"])
