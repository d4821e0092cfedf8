"""Whether work grows with its input, and not with the square of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

FACTOR: Final = 16
NOISE: Final = 0.004
"""Seconds of CPU time that a run may take for reasons of the machine's own."""


def is_linear(work: Callable[[str], object], repeated: str, *, before: str = "", after: str = "", most: int) -> bool:
    """Whether a sixteenth of ``most`` repetitions takes more than a sixty-fourth of the CPU time.

    Of work that grows with the square of its input, it takes a two hundred and fifty-sixth.
    """
    small, large = (_seconds(work, before + repeated * times + after) for times in (most // FACTOR, most))
    return large < 4 * FACTOR * (small + NOISE / FACTOR)


def _seconds(work: Callable[[str], object], text: str) -> float:
    """Return the less of two runs, so that a collection of garbage does not count; nor does what is remembered of the
    same text, as short ones are.
    """
    taken = []
    for end in ("", " "):
        said = text + end
        started = time.process_time()
        work(said)
        taken.append(time.process_time() - started)
    return min(taken)
