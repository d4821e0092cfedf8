"""Shortening what is too long, with a mark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

MARK: Final = "…"

SHORTEST: Final = 16
"""Characters below which a beginning says nothing any more."""

_WORD: Final = 24
"""Characters given up so as not to cut within a word."""


def clipped(text: str, fits: Callable[[str], bool]) -> str | None:
    """Return about the longest beginning of ``text``, with a mark, that ``fits``; None when not even a short one does.

    Gallops, then halves the range down to 1/64 of the length, so that a long text is never counted as a whole.
    """
    low = SHORTEST
    if len(text) <= low or not fits(shortened(text, low)):
        return None
    high = low
    while high < len(text):
        high = min(2 * low, len(text))
        if not fits(shortened(text, high)):
            break
        low = high
    while high - low > max(4, low // 64):
        middle = (low + high) // 2
        if fits(shortened(text, middle)):
            low = middle
        else:
            high = middle
    return shortened(text, low)


def shortened(text: str, length: int) -> str:
    """Return at most ``length`` characters of ``text`` and the mark, cut between words where there are any."""
    if length >= len(text):
        return text + MARK
    space = text.rfind(" ", max(1, length - _WORD), length + 1)
    return text[: space if space > 0 else length].rstrip() + MARK
