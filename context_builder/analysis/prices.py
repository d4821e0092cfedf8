"""What models cost: list prices, to be replaced where yours differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from context_builder.analysis.analyst import Usage

_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars a million tokens: of the prompt, of its part that the provider had cached, of the reply."""

    prompt: float
    cached: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float:
        """Dollars that so many tokens cost; ``cached_tokens`` are among those of the prompt."""
        fresh = max(prompt_tokens - cached_tokens, 0)
        return (fresh * self.prompt + cached_tokens * self.cached + completion_tokens * self.completion) / _MILLION


LIST_PRICES: Final[Mapping[str, Price]] = {
    "gpt-4o-mini": Price(0.15, 0.075, 0.60),
    "gpt-4o": Price(2.50, 1.25, 10.00),
}
"""OpenAI's list prices of the default models, as published in May 2026."""


class Prices:
    """The list prices, with ``own`` ones added or in their place."""

    def __init__(self, own: Mapping[str, Price] | None = None) -> None:
        self._of = {**LIST_PRICES, **(own or {})}

    def __contains__(self, model: str) -> bool:
        return model in self._of

    def of(self, model: str) -> Price:
        """The model's price; nothing for one that is not listed."""
        return self._of.get(model, Price(0.0, 0.0, 0.0))

    def priced(self, usage: Usage) -> Usage:
        """``usage`` with what its tokens cost, or with its calls marked as unpriced."""
        dollars = self.of(usage.model).of(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
        return replace(usage, dollars=dollars, unpriced=0 if usage.model in self else usage.calls)
