"""The rule of thumb for tokens: an estimate, for those who ask for one. Budgets are never kept by it."""

from __future__ import annotations

import math


def estimate_tokens(text: str) -> int:
    """About how many tokens ``text`` has: one for every four characters, rounded up; meant for English."""
    return math.ceil(len(text) / 4)
