"""Garbage is collected without looking through all that lives."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from context_builder.fleet import process
from context_builder.fleet.process import collect_seldom
from tests.services.waiting import wait_until


@pytest.fixture(autouse=True)
def nothing_set_aside() -> Iterator[None]:
    """Nothing is set aside at first; in the end all is again, or every later collection looks through all of it."""
    gc.unfreeze()
    yield
    gc.freeze()


class Ring:
    """Refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.itself = self


async def test_what_lives_is_set_aside_and_what_died_is_freed() -> None:
    before = gc.get_threshold()
    collecting = asyncio.create_task(collect_seldom())
    await wait_until(gc.get_freeze_count, "what lives is set aside")
    ring = weakref.ref(Ring())
    await wait_until(lambda: ring() is None, "a ring that is younger is freed")
    collecting.cancel()
    await asyncio.wait([collecting])
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


async def test_a_process_that_is_too_busy_sets_aside_what_is_new_without_a_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "SHARE", 1e-9)
    monkeypatch.setattr(process, "SET_ASIDE_SECONDS", 0.0)
    monkeypatch.setattr(process, "POLL_SECONDS", 0.01)
    collecting = asyncio.create_task(collect_seldom())
    await wait_until(gc.get_freeze_count, "the first look was made")
    ring = weakref.ref(Ring())
    before = gc.get_freeze_count()
    await wait_until(lambda: gc.get_freeze_count() > before, "what is new is set aside")
    assert ring() is not None
    collecting.cancel()
    await asyncio.wait([collecting])
    gc.collect()
    assert ring() is None
