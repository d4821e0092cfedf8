"""A window of tokens that fills up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from context_builder.assembly.clip import clipped
from context_builder.assembly.estimate import estimate_tokens


class TokenWindowManager:
    """Counts what was put into a window of ``max_tokens``; the estimate, unless a counter is given."""

    def __init__(self, max_tokens: int, count: Callable[[str], int] = estimate_tokens) -> None:
        self.max_tokens = max_tokens
        self.current_tokens = 0
        self._count = count

    @property
    def remaining(self) -> int:
        """Tokens that still fit."""
        return self.max_tokens - self.current_tokens

    def fits(self, text: str) -> bool:
        """Whether ``text`` still fits."""
        return self._count(text) <= self.remaining

    def add(self, text: str) -> bool:
        """Put ``text`` in if it fits; whether it did."""
        tokens = self._count(text)
        if tokens > self.remaining:
            return False
        self.current_tokens += tokens
        return True

    def truncate(self, texts: Sequence[str]) -> list[str]:
        """The last of ``texts`` that fit, put in, in their order; when none does, the beginning of the last."""
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
