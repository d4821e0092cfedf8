"""SomaBrain as a memory store: what its documented calls cannot hold travels in a memory's metadata."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from context_builder.errors import CannotForget, DatabaseRejected
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery, Rating
from context_builder.memory.somabrain import SomaBrainStore
from tests.services.somabrain import SomaBrainServer

WHEN = datetime(2025, 10, 2, 10, 30, tzinfo=UTC)
SAID = Memory(
    "monday:message:1",
    "the helicase unwinds",
    session_id="monday",
    speaker="Alice",
    time=WHEN,
    position=1,
    tags=("Biology / Life Sciences",),
    metadata={"keywords": ["helicase"]},
)


async def test_a_memory_comes_back_as_it_was_remembered(somabrain_store: SomaBrainStore) -> None:
    await somabrain_store.remember("lab", [SAID])
    (found,) = await somabrain_store.search(
        "lab", MemoryQuery("helicase unwinds", filter=MemoryFilter(session_id="monday"))
    )
    assert (found.memory.id, found.memory.text, found.memory.speaker) == (SAID.id, SAID.text, "Alice")
    assert (found.memory.time, found.memory.position, found.memory.tags) == (WHEN, 1, SAID.tags)
    assert found.memory.metadata["keywords"] == ["helicase"]
    assert (found.score, found.origins) == (1.0, ("somabrain",))


async def test_the_documented_fields_are_sent(somabrain_store: SomaBrainStore, somabrain: SomaBrainServer) -> None:
    await somabrain_store.remember("lab", [SAID])
    ((path, body),) = somabrain.requests
    (sent,) = body["memories"]
    assert (path, body["tenant_id"]) == ("/memory/remember/batch", "lab")
    assert set(sent) == {"type", "text", "session_id", "persona_id", "tags", "metadata"}


async def test_what_was_remembered_twice_is_found_once(somabrain_store: SomaBrainStore) -> None:
    await somabrain_store.remember("lab", [SAID])
    await somabrain_store.remember("lab", [SAID])
    assert len(await somabrain_store.search("lab", MemoryQuery("helicase"))) == 1


async def test_a_filter_holds(somabrain_store: SomaBrainStore) -> None:
    await somabrain_store.remember("lab", [SAID, Memory("p", "the helicase point", kind="point")])
    for where in (MemoryFilter(kinds=("point",)), MemoryFilter(until=WHEN, kinds=("point",))):
        found = await somabrain_store.search("lab", MemoryQuery("helicase", filter=where))
        assert [one.memory.id for one in found] == ([] if where.until else ["p"])


async def test_it_cannot_learn_what_helped_and_says_so(somabrain_store: SomaBrainStore) -> None:
    await somabrain_store.rate("lab", [])
    with pytest.raises(DatabaseRejected, match="documents no way to rate memories"):
        await somabrain_store.rate("lab", [Rating("m", 1.0, datetime(2025, 1, 1, tzinfo=UTC))])


async def test_it_cannot_forget_and_says_so(somabrain_store: SomaBrainStore) -> None:
    assert await somabrain_store.forget("lab") == 0
    with pytest.raises(CannotForget, match="delete them there"):
        await somabrain_store.forget("lab", filter=MemoryFilter(session_id="monday"))
