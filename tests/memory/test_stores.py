"""Every store of memories behaves alike."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from context_builder.database.supabase import SupabaseDatabase
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery, MemoryStore
from context_builder.memory.options import SomaBrainOptions
from context_builder.memory.somabrain import SomaBrainClient, SomaBrainStore
from context_builder.memory.sql_memory import PostgresMemory, SqlMemory
from context_builder.testing import InMemoryStore
from tests.services.postgrest import api_key, serving_project
from tests.services.somabrain import SomaBrainServer

ENGINES = ("PostgreSQL", "Supabase")
NOW = datetime(2025, 1, 1, tzinfo=UTC)
MINE, THEIRS, SAID = (
    Memory("mine", "my tortoise", "preference", "s-1", "ann", time=NOW),
    Memory("theirs", "their tortoise", "preference", "s-1", "bob", time=NOW),
    Memory("said", "a tortoise for all", session_id="s-1", speaker="Kai", time=NOW),
)
SAGES = Memory("sage's", "its tortoise", time=NOW, metadata={"persona_id": "sage"})


@pytest.fixture(
    params=["memory", "SomaBrain", *(pytest.param(engine, marks=pytest.mark.engines) for engine in ENGINES)]
)
async def store(request: pytest.FixtureRequest) -> AsyncIterator[MemoryStore]:
    if request.param in ENGINES:
        url = request.getfixturevalue("postgres_server").create_database(migrated=True)
        async with in_database(url, supabase=request.param == "Supabase") as opened:
            yield opened
    elif request.param == "SomaBrain":
        async with in_somabrain() as opened:
            yield opened
    else:
        yield InMemoryStore()


@asynccontextmanager
async def in_database(url: str, *, supabase: bool) -> AsyncIterator[MemoryStore]:
    async with serving_project(url) as front:
        opened = SqlMemory(SupabaseDatabase(front.url, api_key("service_role"))) if supabase else PostgresMemory(url)
        yield opened
        await opened.close()


@asynccontextmanager
async def in_somabrain() -> AsyncIterator[MemoryStore]:
    with SomaBrainServer() as server:
        opened = SomaBrainStore(SomaBrainClient(SomaBrainOptions(server.url)))
        yield opened
        await opened.close()


async def ids(store: MemoryStore, query: MemoryQuery, tenant: str = "lab") -> set[str]:
    return {found.memory.id for found in await store.search(tenant, query)}


async def test_the_preference_stated_last_holds_also_when_an_earlier_one_arrives_later(store: MemoryStore) -> None:
    if store.name.startswith("SomaBrain"):
        pytest.skip("SomaBrain decides by itself which holds")
    later = replace(MINE, text="a turtle", time=NOW + timedelta(days=1))
    for stated in (later, MINE):
        await store.remember("lab", [stated])
    assert [found.memory.text for found in await store.search("lab", MemoryQuery("turtle tortoise"))] == ["a turtle"]
    said = replace(SAID, time=NOW - timedelta(days=1), text="a tortoise, corrected")
    await store.remember("lab", [SAID])
    await store.remember("lab", [said])
    assert [found.memory.text for found in await store.search("lab", MemoryQuery("tortoise"))] == [said.text]


async def test_what_belongs_to_others_is_not_found(store: MemoryStore) -> None:
    await store.remember("lab", [MINE, THEIRS, SAID, SAGES])
    for where, met in (
        (MemoryFilter(), {"mine", "theirs", "said", "sage's"}),
        (MemoryFilter(user_id="ann"), {"mine"}),
        (MemoryFilter(user_id="ann", with_unowned=True), {"mine", "said"}),
        (MemoryFilter(with_unowned=True), {"said"}),
        (MemoryFilter(persona_id="sage", with_unowned=True), {"said", "sage's"}),
        (MemoryFilter(persona_id="sage"), {"sage's"}),
        (MemoryFilter(session_id="s-1", with_unowned=True), {"said"}),
        (MemoryFilter(kinds=("preference",), user_id="bob", with_unowned=True), {"theirs"}),
        (MemoryFilter(ids=("mine", "said", "nobody's")), {"mine", "said"}),
        (MemoryFilter(ids=("mine",), user_id="bob"), set()),
        (MemoryFilter(speaker="Kai"), {"said"}),
        (MemoryFilter(speaker="ka' OR true --"), set[str]()),
    ):
        assert await ids(store, MemoryQuery("tortoise", filter=where)) == met, where
        if not isinstance(store, SomaBrainStore):  # which finds nothing where nothing is looked for
            assert await ids(store, MemoryQuery("", filter=where)) == met, where
    assert await ids(store, MemoryQuery("tortoise"), "other") == set()


async def test_filters_read_numbers_as_names_and_times_without_offset_as_local(store: MemoryStore) -> None:
    await store.remember("lab", [replace(SAGES, metadata={"persona_id": 7})])
    local = NOW.astimezone().replace(tzinfo=None)
    for where, met in (
        (MemoryFilter(persona_id="7", since=local), {"sage's"}),
        (MemoryFilter(persona_id="70"), set()),
        (MemoryFilter(until=local), set()),
    ):
        assert await ids(store, MemoryQuery("tortoise", filter=where)) == met


async def test_a_memory_comes_back_as_it_was(store: MemoryStore) -> None:
    kept = replace(SAID, speaker="Zoë", position=7, tags=("a", "b"), metadata={"n": 1.5})
    await store.remember("lab", [kept])
    (found,) = await store.search("lab", MemoryQuery("tortoise"))
    assert replace(found.memory, metadata={}) == replace(kept, metadata={})
    assert found.memory.metadata["n"] == 1.5


async def test_names_of_any_length_are_told_apart(store: MemoryStore) -> None:
    long = "".join(map(chr, range(0x4E00, 0x4E00 + 6000)))  # too many different characters to be compressed
    for number, name in enumerate((long, f"{long}!", "ann")):
        await store.remember("lab", [Memory(f"m-{number}", "tortoise", "preference", name, name, name)])
        assert await ids(store, MemoryQuery("tortoise", filter=MemoryFilter(user_id=name))) == {f"m-{number}"}
        assert await ids(store, MemoryQuery("tortoise", filter=MemoryFilter(session_id=name))) == {f"m-{number}"}


async def test_moments_with_any_offset_are_kept(store: MemoryStore) -> None:
    for tenant, hours in (("west", -23.98), ("east", 23.98), ("odd", 5.0001)):
        moments = [time.replace(tzinfo=timezone(timedelta(hours=hours))) for time in (datetime.min, NOW, datetime.max)]
        await store.remember(tenant, [Memory(f"m-{n}", "tortoise", time=moment) for n, moment in enumerate(moments)])
        since = MemoryFilter(since=moments[1], until=moments[2])
        found = await store.search(tenant, MemoryQuery("tortoise", filter=since))
        assert [(one.memory.id, one.memory.time) for one in found] == [("m-1", moments[1])]


async def test_a_threshold_leaves_out_even_the_best_when_it_is_about_something_else(store: MemoryStore) -> None:
    await store.remember("lab", [SAID, Memory("weather", "rain again")])
    query = MemoryQuery("Which tortoise explains quantum flux, entropy, gravity, magnets and dark energy best?")
    (found,) = await store.search("lab", query)
    assert 0 < found.score < 0.7
    assert await store.search("lab", replace(query, threshold=0.7)) == []
    (found,) = await store.search("lab", MemoryQuery("tortoise", threshold=0.99))
    assert found.score == pytest.approx(1.0)


async def test_remembering_again_leaves_one(store: MemoryStore) -> None:
    await store.remember("lab", [SAID])
    await store.remember("lab", [SAID])
    assert len(await store.search("lab", MemoryQuery("tortoise"))) == 1


async def test_filters_narrow(store: MemoryStore) -> None:
    tagged = replace(SAID, id="tagged", tags=("a", "b"), kind="point", session_id="s-2")
    await store.remember("lab", [SAID, tagged])
    for where in (
        MemoryFilter(tags=("b", "a")),
        MemoryFilter(kinds=("point",)),
        MemoryFilter(session_id="s-2"),
        MemoryFilter(tags=("a",), since=NOW),
    ):
        assert await ids(store, MemoryQuery("tortoise", filter=where)) <= {"tagged"}
    assert await ids(store, MemoryQuery("tortoise", filter=MemoryFilter(until=NOW))) == set()
