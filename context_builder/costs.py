"""Model calls cost what their usage comes to by the prices; a budget is a hard cap for an hour."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final

import structlog

from context_builder import metrics
from context_builder.errors import OverBudget

_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts what a result cost; nothing for plain text analysis.

    ``cached_tokens`` are among the prompt's. ``dollars`` is an estimate by the list price, without
    the ``unpriced`` calls, whose model has no known price. ``rejected`` counts the points of replies
    that came to nothing because none of them could be accepted.
    """

    model: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    dollars: float = 0.0
    unpriced: int = 0
    rejected: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Return the sum, under both models' names."""
        return Usage(
            model=" + ".join(dict.fromkeys(filter(None, [self.model, other.model]))),
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            calls=self.calls + other.calls,
            dollars=self.dollars + other.dollars,
            unpriced=self.unpriced + other.unpriced,
            rejected=self.rejected + other.rejected,
        )


NO_USAGE: Final = Usage()
"""Usage of plain text analysis: none."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens: of the prompt, of the part that the provider had cached, and of the reply."""

    prompt: float
    cached: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float:
        """Return the dollars that so many tokens cost; ``cached_tokens`` are among those of the prompt."""
        fresh = max(prompt_tokens - cached_tokens, 0)
        return (fresh * self.prompt + cached_tokens * self.cached + completion_tokens * self.completion) / _MILLION


LIST_PRICES: Final[Mapping[str, Price]] = {
    "gpt-4o-mini": Price(0.15, 0.075, 0.60),
    "gpt-4o": Price(2.50, 1.25, 10.00),
    "text-embedding-3-small": Price(0.02, 0.02, 0.0),
    "text-embedding-3-large": Price(0.13, 0.13, 0.0),
}
"""OpenAI's list prices of the default models and of its embeddings, as published in May 2026."""


class Prices:
    """The list prices of models, with ``own`` prices added or in their place."""

    def __init__(self, own: Mapping[str, Price] | None = None) -> None:
        self._of = {**LIST_PRICES, **(own or {})}

    def __contains__(self, model: str) -> bool:
        return model in self._of

    def of(self, model: str) -> Price:
        """Return the model's price; a price of zero for a model that is not listed."""
        return self._of.get(model, Price(0.0, 0.0, 0.0))

    def priced(self, usage: Usage) -> Usage:
        """Return ``usage`` with its tokens' cost, or with its calls marked as unpriced."""
        dollars = self.of(usage.model).of(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
        return replace(usage, dollars=dollars, unpriced=0 if usage.model in self else usage.calls)


log = structlog.get_logger(__name__)

HOUR: Final = 3600.0

SHARES: Final[Mapping[str, float]] = {
    "preferences": 0.6,
    "domains": 0.6,
    "embeddings": 0.8,
    "keywords": 0.8,
    "compaction": 0.9,
    "verification": 1.0,
    "summary": 1.0,
}
"""The part of the budget up to which each task may ask the model: what readers miss least stops first."""

_RECOVERED: Final = 0.9
"""A task's use of its share at which it is told that the budget has recovered: not at every call near the limit."""

_UNITS: Final = 10**9
"""A budget is counted in whole billionths of a dollar, so that what is added and taken away leaves nothing behind."""


@dataclass(slots=True)
class Reservation:
    """Sets a call's worst case aside, in US dollars, until its cost is known."""

    dollars: float


class Budget:
    """Limits all sessions of a process to ``per_hour`` US dollars in any hour.

    A call's worst case is set aside before it is made, so that the cap holds whatever the reply
    costs, and replaced by its cost afterwards. ``now`` tells seconds on a clock that never goes back.
    """

    def __init__(self, per_hour: float, now: Callable[[], float] = time.monotonic) -> None:
        self._cap = math.floor(per_hour * _UNITS)
        self._now = now
        self._spent: deque[tuple[float, int]] = deque()
        self._spent_units = 0
        self._held_units = 0
        self._refused: set[str] = set()

    @property
    def used(self) -> float:
        """Return the US dollars spent within the last hour or set aside for calls under way."""
        return self._used_units() / _UNITS

    @contextmanager
    def hold(self, task: str, worst: float) -> Iterator[Reservation]:
        """Set ``worst`` US dollars aside while a call of ``task`` is made; the hold's final amount is spent.

        Raises :class:`OverBudget` instead when the task's share of the hour would be exceeded.
        """
        units = math.ceil(worst * _UNITS)
        self._admit(task, units)
        self._held_units += units
        held = Reservation(worst)
        try:
            yield held
        finally:
            self._held_units -= units
            self._spend(math.ceil(held.dollars * _UNITS))

    def _admit(self, task: str, units: int) -> None:
        limit = math.floor(self._cap * SHARES[task])
        if units and self._used_units() + units > limit:
            if task not in self._refused:
                self._refused.add(task)
                log.warning("budget.used_up", task=task, used=self.used, needed=units / _UNITS, limit=limit / _UNITS)
            raise OverBudget(f"{task}: this hour's budget is used up (LLM_BUDGET_PER_HOUR)")
        if task in self._refused and self._used_units() <= _RECOVERED * limit:
            self._refused.remove(task)
            log.info("budget.recovered", task=task, used=self.used)

    def _spend(self, units: int) -> None:
        if units:
            self._spent.append((self._now(), units))
            self._spent_units += units

    def _used_units(self) -> int:
        """Sum the last hour; what was spent exactly an hour ago still counts."""
        beginning = self._now() - HOUR
        while self._spent and self._spent[0][0] < beginning:
            self._spent_units -= self._spent.popleft()[1]
        return self._spent_units + self._held_units


_collected: ContextVar[list[Usage] | None] = ContextVar("context_builder_usage", default=None)


def count_usage(task: str, usage: Usage) -> None:
    """Add what a call of ``task`` used to the process's metrics."""
    metrics.CALLS.labels(task, usage.model).inc(usage.calls)
    metrics.COST_DOLLARS.labels(task, usage.model).inc(usage.dollars)
    metrics.REJECTED_POINTS.inc(usage.rejected)
    kinds = {"prompt": usage.prompt_tokens, "cached": usage.cached_tokens, "completion": usage.completion_tokens}
    for kind, tokens in kinds.items():
        if tokens:
            metrics.TOKENS.labels(task, usage.model, kind).inc(tokens)


def charge(task: str, usage: Usage) -> None:
    """Count what a call used, and tell whoever collects it."""
    count_usage(task, usage)
    if (collected := _collected.get()) is not None:
        collected.append(usage)


@contextmanager
def collected_usage() -> Iterator[list[Usage]]:
    """Collect the usage of the calls made inside, in the list that it gives."""
    usages: list[Usage] = []
    token = _collected.set(usages)
    try:
        yield usages
    finally:
        _collected.reset(token)
