"""Builders that count words: quick, and easy to follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from context_builder.assembly import ContextBuilder
from context_builder.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def builder(clock: ManualClock) -> Callable[..., ContextBuilder]:
    """Makes a builder with the test's own parts."""

    def make(**parts: Any) -> ContextBuilder:
        return ContextBuilder(**({"token_counter": lambda text: len(text.split()), "clock": clock} | parts))

    return make
