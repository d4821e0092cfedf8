"""How far long work is, also for who reads it in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

EVERY: Final = 10.0
"""Seconds between two lines."""


def progress(steps: Sequence[T], what: str) -> Iterator[T]:
    """The steps, and a line now and then about how long the rest will take."""
    began = told = time.monotonic()
    for done, step in enumerate(steps):
        if (now := time.monotonic()) - told > EVERY:
            told = now
            rest = (now - began) / done * (len(steps) - done)
            print(f"  {what}: {done / len(steps):.0%}, {rest:.0f} s to go", file=sys.stderr)
        yield step
