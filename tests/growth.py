"""Whether work grows with its input, and not with the square of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

REPEATS: Final = 2_000
FACTOR: Final = 16
NOISE: Final = 0.004
"""Seconds of CPU time that a run may take for reasons of the machine's own."""


def is_linear(work: Callable[[str], object], repeated: str, before: str = "", after: str = "") -> bool:
    """Whether 16 times the input takes less than 64 times the CPU time; the square of it would be 256 times."""
    small, large = (_seconds(work, before + repeated * (REPEATS * times) + after) for times in (1, FACTOR))
    return large < 4 * FACTOR * (small + NOISE / FACTOR)


def _seconds(work: Callable[[str], object], text: str) -> float:
    started = time.process_time()
    work(text)
    return time.process_time() - started
