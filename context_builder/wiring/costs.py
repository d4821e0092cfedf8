"""The prices and the hourly budget that all parts of a process share."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from context_builder.costs import Budget, Price, Prices
from context_builder.errors import SettingError
from context_builder.settings.settings import Settings


def prices_of(settings: Settings) -> Prices:
    """Return the list prices, or those that the settings name instead."""
    return Prices({model: Price(*dollars) for model, dollars in (settings.model.prices or {}).items()})


def budget_for(models: Iterable[str], settings: Settings) -> Budget | None:
    """Return the process's budget, if it has one, which calls of ``models`` share with all others.

    Raises :class:`SettingError` where it could not be kept, the price of a model being unknown.
    """
    if (per_hour := settings.model.budget_per_hour) is None:
        return None
    prices = prices_of(settings)
    for model in models:
        if model not in prices:
            raise SettingError(
                f"LLM_BUDGET_PER_HOUR: cannot be kept, because the price of {model} is not known; "
                "name it in LLM_PRICES ([0, 0, 0] if it is free)"
            )
    return process_budget(per_hour)


@cache
def process_budget(per_hour: float) -> Budget:
    """Return the process's one budget: its daemons and builders spend from the same hour."""
    return Budget(per_hour)
