"""A window of tokens that fills up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from context_builder.assembly.budget import clipped
from context_builder.tokens.counter import estimate_tokens

WINDOWS: Final[Mapping[str, int]] = {
    "gpt-3.5-turbo": 16_385,
    "gpt-3.5-turbo-instruct": 4_096,
    "gpt-4": 8_192,
    "gpt-4-turbo": 128_000,
    "gpt-4o": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-5": 400_000,
    "gpt-5-chat": 128_000,
    "o1": 200_000,
    "o1-mini": 128_000,
    "o1-preview": 128_000,
    "o3": 200_000,
    "o4-mini": 200_000,
    "claude": 200_000,
    "claude-2.0": 100_000,
    "claude-instant": 100_000,
    "gemini-1.5": 1_048_576,
    "gemini-2": 1_048_576,
    "llama-3": 8_192,
    "llama-3.1": 131_072,
    "llama-3.2": 131_072,
    "llama-3.3": 131_072,
    "mistral-large": 131_072,
    "mixtral-8x7b": 32_768,
    "smollm2": 8_192,
}
"""By how a model's name begins; the longest beginning that fits counts."""


def window_of(model: str) -> int | None:
    """Return the context window of ``model`` in tokens, None when unknown; a ``vendor/`` prefix is ignored."""
    name = model.rpartition("/")[2].lower()
    known = [beginning for beginning in WINDOWS if name.startswith(beginning)]
    return WINDOWS[max(known, key=len)] if known else None


class TokenWindowManager:
    """Counts the texts put into a window of ``max_tokens``, by the estimate unless given a counter."""

    def __init__(self, max_tokens: int, count: Callable[[str], int] = estimate_tokens) -> None:
        self.max_tokens = max_tokens
        self.current_tokens = 0
        self._count = count

    @property
    def remaining(self) -> int:
        """Return the tokens that still fit."""
        return self.max_tokens - self.current_tokens

    def fits(self, text: str) -> bool:
        """Return whether ``text`` still fits."""
        return self._count(text) <= self.remaining

    def add(self, text: str) -> bool:
        """Put ``text`` in if it fits, and return whether it did."""
        tokens = self._count(text)
        if tokens > self.remaining:
            return False
        self.current_tokens += tokens
        return True

    def truncate(self, texts: Sequence[str]) -> list[str]:
        """Put in the last of ``texts`` that fit, else the beginning of the last one; return them in order."""
        kept: list[str] = []
        for text in reversed(texts):
            if not self.add(text):
                break
            kept.append(text)
        if not kept and texts and (start := clipped(texts[-1], self.fits)):
            self.add(start)
            kept.append(start)
        return kept[::-1]

    def reset(self) -> None:
        """Empty the window."""
        self.current_tokens = 0
