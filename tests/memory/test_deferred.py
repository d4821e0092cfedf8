"""A memory that is opened at first use, and again when that failed."""

from __future__ import annotations

import pytest

from context_builder.errors import EngineError, MemoryUnavailable
from context_builder.memory.memory import DeferredMemory, Memory, MemoryQuery, MemoryStore
from context_builder.testing import InMemoryStore


async def test_it_is_opened_once_and_a_failed_opening_is_tried_again() -> None:
    openings: list[EngineError | MemoryStore] = [EngineError("no room"), InMemoryStore()]

    async def open_memory() -> MemoryStore:
        opened = openings.pop(0)
        if isinstance(opened, EngineError):
            raise opened
        return opened

    memory = DeferredMemory("the embedded PostgreSQL", open_memory)
    with pytest.raises(MemoryUnavailable, match="no room"):
        await memory.search("lab", MemoryQuery("hello"))
    await memory.remember("lab", [Memory("1", "hello")])
    assert [found.memory.id for found in await memory.search("lab", MemoryQuery("hello"))] == ["1"]
    assert await memory.forget("lab", ids=["1"]) == 1
    await memory.close()
    assert openings == []


async def test_one_that_was_never_used_is_closed_all_the_same() -> None:
    async def never() -> MemoryStore:
        raise AssertionError("it was not to be opened")

    await DeferredMemory("the embedded PostgreSQL", never).close()
