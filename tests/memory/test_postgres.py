"""What is remembered is found by its words, its meaning, its speaker and its place."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
from structlog.testing import capture_logs

from context_builder.database.postgres import PostgresDatabase
from context_builder.errors import DatabaseRejected, DatabaseUnavailable
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery
from context_builder.memory.sql_memory import PostgresMemory
from tests.memory.vectors import LetterEmbedder

pytestmark = pytest.mark.engines

TALK = (
    ("Alice", "I adopted a tortoise last spring."),
    ("Bob", "How lovely! What is the name?"),
    ("Alice", "Speedy, of course."),
    ("Bob", "I never liked dogs much."),
)


def talk(session_id: str = "session-1") -> list[Memory]:
    said_at = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    return [
        Memory(f"{session_id}-{place}", text, session_id=session_id, speaker=speaker, time=said_at, position=place)
        for place, (speaker, text) in enumerate(TALK, 1)
    ]


async def texts(memory: PostgresMemory, query: str, limit: int = 8, **filtered: Any) -> list[str]:
    found = await memory.search("acme", MemoryQuery(query, limit, filter=MemoryFilter(**filtered)))
    return [each.memory.text for each in found]


async def test_a_memory_comes_back_as_it_was(memory: PostgresMemory) -> None:
    kept = Memory(
        id="m-1",
        text="It's a 'quoted' \\ text – 蛇 🐍",
        kind="point",
        session_id="session-1",
        user_id="user-1",
        speaker="Zoë",
        time=datetime(2023, 5, 8, tzinfo=UTC),
        position=7,
        tags=("a", "b"),
        metadata={"domains": ["Biology"], "n": 1.5},
    )
    await memory.remember("acme", [kept])
    (found,) = await memory.search("acme", MemoryQuery("quoted?"))
    assert (found.memory, found.score, found.origins) == (kept, 1.0, ("full_text",))


async def test_words_that_thousands_have_are_found_where_they_meet(memory: PostgresMemory) -> None:
    said = [Memory(f"m-{n}", f"{'the boat' if n % 2 else 'the harbour'} of {n}") for n in range(2_400)]
    await memory.remember("acme", [*said, Memory("both", "the boat left the harbour of old, 7 times or 9")])
    assert (await texts(memory, "boat harbour"))[0].startswith("the boat left")
    assert len(await texts(memory, "boat")) == 8
    assert (await texts(memory, "boat 1023"))[0] == "the boat of 1023"


async def test_a_word_that_thousands_have_brings_each_memory_once(memory: PostgresMemory) -> None:
    others = [Memory(f"m-{n}", f"the boat of {n}") for n in range(1_200)]
    await memory.remember("acme", [*others, *(Memory(f"s-{n}", f"my boat of {n}", session_id="s") for n in range(40))])
    assert len(await texts(memory, "boat 17", 40, session_id="s")) == 40


async def test_a_session_finds_its_own_by_any_word_however_common_elsewhere(memory: PostgresMemory) -> None:
    others = [Memory(f"m-{n}", f"the {'boat' if n % 2 else 'harbour'} of {n}", user_id="ann") for n in range(2_400)]
    mine = Memory("mine", "our harbour is calm", session_id="session-1", user_id="kai")
    await memory.remember("acme", [*others, mine])
    assert await texts(memory, "boat harbour", session_id="session-1") == [mine.text]
    assert await texts(memory, "boat harbour", user_id="kai", with_unowned=True) == [mine.text]


async def test_a_search_reads_nothing_of_other_tenants(memory: PostgresMemory, database: asyncpg.Connection) -> None:
    await memory.remember("others", [Memory(f"o-{n}", f"tortoise {n}") for n in range(900)])
    await memory.remember("acme", [Memory("a", "my tortoise"), Memory("b", "your dog")])
    await database.execute("ANALYZE; SET enable_seqscan = off; SET enable_indexscan = off")
    plan = await database.fetchval(
        "EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM context_memories AS m"
        " WHERE context_memory_keys(tenant_id, tsvector_to_array(words)) && context_memory_keys('acme', '{tortois}')"
    )
    scan = json.loads(plan)[0]["Plan"]
    assert (scan["Node Type"], scan["Actual Rows"]) == ("Bitmap Heap Scan", 1)
    assert scan["Plans"][0]["Index Name"] == "context_memories_keys"


async def test_without_a_query_the_newest_that_pass_the_filter_are_found(memory: PostgresMemory) -> None:
    days = [Memory(f"day-{day}", f"on day {day}", time=datetime(2023, 5, day, tzinfo=UTC)) for day in (2, 3, 1)]
    await memory.remember("acme", [*days, Memory("undated", "some day"), Memory("other", "on day 9", tags=("pinned",))])
    assert await texts(memory, "", 2) == ["on day 3", "on day 2"]
    assert await texts(memory, " ", tags=("pinned",)) == ["on day 9"]


async def test_with_what_is_unowned_a_user_finds_what_was_said_in_sessions_too(memory: PostgresMemory) -> None:
    said, mine = Memory("said", "a tortoise for all"), Memory("mine", "my tortoise", user_id="kai")
    others = [
        Memory("theirs", "their tortoise", user_id="ann"),
        Memory("its", "its tortoise", metadata={"persona_id": "sage"}),
    ]
    await memory.remember("acme", [said, mine, *others])
    found = await texts(memory, "tortoise", user_id="kai", persona_id="mentor", with_unowned=True)
    assert sorted(found) == sorted([said.text, mine.text])
    assert await texts(memory, "tortoise", user_id="kai") == [mine.text]


async def test_a_hit_brings_its_neighbours(memory: PostgresMemory) -> None:
    await memory.remember("acme", talk())
    found = await memory.search("acme", MemoryQuery("What did Alice call her tortoise?", 3))
    assert [(each.memory.position, each.origins) for each in found] == [
        (1, ("full_text",)), (3, ("full_text",)), (2, ("neighbour",)),
    ]  # fmt: skip
    assert 1.0 > found[0].score > found[1].score > found[2].score > 0


async def test_a_memory_is_found_by_who_said_it_and_when(memory: PostgresMemory) -> None:
    await memory.remember(
        "acme", [*talk(), Memory("late", "Nothing new.", speaker="Carol", time=datetime(2024, 11, 2, tzinfo=UTC))]
    )
    assert (await texts(memory, "What was on 2 November 2024?"))[0] == "Nothing new."
    assert (await texts(memory, "Carol?")) == ["Nothing new."]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("하이드로폰", "하이드로폰을 화요일에 교체합니다"),
        ("예산에서는", "이번 분기 예산이 삼백만 원 남았습니다"),
        ("앱", "앱이 어제 세 번 멈췄습니다"),
        ("팀에서", "다음 주부터 팀을 둘로 나눕니다"),
        ("API", "API를 금요일까지 배포하기로 했습니다"),
    ],
)
async def test_a_korean_noun_is_found_whatever_particle_it_has(memory: PostgresMemory, query: str, said: str) -> None:
    others = ("회의록은 내일 보내 드립니다", "다음 회의는 서울에서 합니다", "Nothing of this is Korean")
    await memory.remember("acme", [Memory(str(n), text) for n, text in enumerate((*others, said))])
    assert (await texts(memory, query))[:1] == [said]


async def test_a_rare_word_weighs_more_than_a_common_one(memory: PostgresMemory) -> None:
    common = [Memory(f"c-{n}", f"The meeting about topic {n}") for n in range(30)]
    await memory.remember("acme", [*common, Memory("rare", "The axolotl")])
    assert (await texts(memory, "axolotl meeting"))[0] == "The axolotl"


async def test_a_single_memory_with_five_of_six_words_is_relevant(memory: PostgresMemory) -> None:
    await memory.remember("acme", [Memory("1", "Acoustic beacons need a permit before they are mounted in the cove.")])
    (found,) = await memory.search("acme", MemoryQuery("What needs an acoustic beacon that may be mounted in a cove?"))
    assert found.score > 0.9


async def test_words_of_a_first_hit_that_stands_alone_lead_on(memory: PostgresMemory) -> None:
    others = [Memory(str(place), f"Tortoises number {place} sleep.") for place in range(30)]
    sights = (
        "red cliffs, long beaches, old harbours, tall towers, narrow lanes, bright gardens, blue doors, stone ovens"
    )
    more = "quiet chapels, steep stairs, drying nets, lemon groves"
    bridge = Memory("bridge", f"Speedy was born on Marettimo, an island of {sights}, {more} and deep wells.")
    away = Memory("away", "The deep wells of that island hold no water.")
    await memory.remember("acme", [*others, bridge, away])
    assert (await texts(memory, "Where was Speedy born?"))[:2] == [bridge.text, away.text]


async def test_remembering_again_replaces(memory: PostgresMemory) -> None:
    await memory.remember("acme", [Memory("m", "old words"), Memory("m", "newer words")])
    await memory.remember("acme", [Memory("m", "latest words")])
    assert await texts(memory, "words") == ["latest words"]
    assert await texts(memory, "newer old") == []


async def test_filters_restrict_hits_and_neighbours(memory: PostgresMemory) -> None:
    other = Memory(
        "p",
        "A tortoise likes lettuce",
        "point",
        "session-2",
        "user-2",
        tags=("pets", "food"),
        metadata={"persona_id": "x"},
    )
    await memory.remember("acme", [*talk(), other])
    assert await texts(memory, "tortoise", session_id="session-2") == [other.text]
    assert await texts(memory, "tortoise", user_id="user-2") == [other.text]
    assert await texts(memory, "tortoise", persona_id="x") == [other.text]
    assert await texts(memory, "tortoise", kinds=("point", "preference")) == [other.text]
    assert await texts(memory, "tortoise", tags=("food", "pets")) == [other.text]
    assert await texts(memory, "tortoise", tags=("food", "none")) == []
    assert other.text not in await texts(memory, "tortoise", since=datetime(2023, 1, 1, tzinfo=UTC))
    assert await texts(memory, "tortoise", until=datetime(2023, 1, 1, tzinfo=UTC)) == []
    assert await texts(memory, "tortoise", user_id="' OR true --") == []


async def test_equal_texts_are_given_once_and_weak_ones_cut(memory: PostgresMemory) -> None:
    await memory.remember(
        "acme",
        [Memory(f"m-{n}", "the same tortoise") for n in range(5)]
        + [Memory("x", "tortoise and a long tail of other words")],
    )
    assert await texts(memory, "same tortoise", 3) == ["the same tortoise", "tortoise and a long tail of other words"]
    strict = await memory.search("acme", MemoryQuery("same tortoise", threshold=0.99))
    assert [each.memory.text for each in strict] == ["the same tortoise"]


async def test_forgetting_by_id_and_by_filter_counts(memory: PostgresMemory) -> None:
    await memory.remember("acme", talk() + talk("session-2"))
    assert await memory.forget("acme") == 0
    assert await memory.forget("acme", ids=["session-1-1", "nobody"]) == 1
    assert await memory.forget("acme", filter=MemoryFilter(sensitivities=("confidential",))) == 0
    assert await memory.forget("acme", filter=MemoryFilter(session_id="session-1")) == 3
    assert await memory.forget("acme", filter=MemoryFilter()) == 4
    assert await texts(memory, "tortoise") == []


@pytest.mark.parametrize(
    "query", ["", "   ", "the and of", "\x00", "' | & ! <-> :*", "\ud800", "a\\'b", "word " * 5_000]
)
async def test_any_text_can_be_looked_for_and_remembered(memory: PostgresMemory, query: str) -> None:
    await memory.remember(
        "acme", [Memory("hostile", query, speaker=query[:50], metadata={query[:50]: float("nan")}), *talk()]
    )
    await memory.search("acme", MemoryQuery(query))
    assert TALK[0][1] in await texts(memory, "tortoise")


async def test_meaning_finds_what_words_do_not(hybrid: PostgresMemory) -> None:
    await hybrid.remember("acme", [Memory("a", "listen"), Memory("b", "buzz")])
    found = await hybrid.search("acme", MemoryQuery("silent"))
    assert (found[0].memory.id, found[0].origins) == ("a", ("vector",))


async def test_an_unchanged_text_is_not_embedded_again(hybrid: PostgresMemory, embedder: LetterEmbedder) -> None:
    await hybrid.remember("acme", [Memory("a", "listen"), Memory("b", "buzz")])
    await hybrid.remember("acme", [Memory("a", "listen", tags=("new",)), Memory("b", "fizz")])
    assert embedder.embedded == ["listen", "buzz", "fizz"]
    assert [each.memory.tags for each in await hybrid.search("acme", MemoryQuery("silent", 1))] == [("new",)]


async def test_what_is_wrong_is_said(database_url: str) -> None:
    unmigrated = PostgresMemory(database_url)
    with pytest.raises(DatabaseRejected, match="run `context-builder migrate`"):
        await unmigrated.search("acme", MemoryQuery("x"))
    for no_name in ("", "a\x00", "a\ud800"):
        with pytest.raises(DatabaseRejected, match="none was named"):
            await unmigrated.search(no_name, MemoryQuery("x"))
    await unmigrated.close()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        stuck = PostgresMemory(f"postgresql://u:secret@127.0.0.1:{silent.getsockname()[1]}/d", timeout=0.1)
        with pytest.raises(DatabaseUnavailable, match="does not answer in time") as caught:
            await stuck.search("acme", MemoryQuery("x"))
        assert "secret" not in str(caught.value)
        await stuck.close()


async def test_a_server_without_pgvector_searches_words_alone_and_says_so_once(
    hybrid: PostgresMemory, database: asyncpg.Connection
) -> None:
    await database.execute("DROP EXTENSION vector")
    with capture_logs() as logs:
        for text in ("listen", "buzz"):
            await hybrid.remember("acme", [Memory(text, text)])
    assert [entry["event"] for entry in logs] == ["memory.embeddings_unsupported"]
    assert [found.origins for found in await hybrid.search("acme", MemoryQuery("listen"))] == [("full_text",)]


@pytest.mark.parametrize("has_pooler", [True, False])
async def test_a_program_that_stops_within_a_call_holds_up_the_tenant_s_others_for_seconds_only(
    migrated_url: str, memory: PostgresMemory, monkeypatch: pytest.MonkeyPatch, *, has_pooler: bool
) -> None:
    """As one does that is frozen, or cut off, when the database has answered; behind a pooler before it commits."""
    if has_pooler:
        monkeypatch.setattr(asyncpg.Connection, "get_server_pid", lambda _: 0)
    stopped, goes_on = asyncio.Event(), asyncio.Event()
    answer = asyncpg.Connection.fetchval

    async def answer_and_stop(connection: asyncpg.Connection, *arguments: Any) -> Any:
        value = await answer(connection, *arguments)
        stopped.set()
        await goes_on.wait()
        return value

    frozen = PostgresDatabase(migrated_url)
    monkeypatch.setattr(asyncpg.Connection, "fetchval", answer_and_stop)
    call = asyncio.create_task(
        frozen.call(
            "context_memory_remember", "lab", {"memories": [{"id": "m0", "kind": "message", "text": "Ants dig."}]}
        )
    )
    await stopped.wait()
    monkeypatch.undo()
    await memory.remember("lab", [Memory("m1", "Bees dance.")])
    goes_on.set()
    with pytest.raises(DatabaseUnavailable) if has_pooler else nullcontext():
        await call
    await frozen.close()


async def test_what_comes_again_is_embedded_again_only_if_it_says_something_else(
    hybrid: PostgresMemory, database: asyncpg.Connection
) -> None:
    await hybrid.remember("acme", [Memory("same", "Ants dig."), Memory("other", "Bees dance.")])
    vectors = "SELECT id, xmin::text FROM context_memory_vectors ORDER BY id"
    before = dict(await database.fetch(vectors))
    await hybrid.remember(
        "acme",
        [
            Memory("new", "Crickets sing."),
            Memory("same", "Ants dig.", tags=("soil",)),
            Memory("other", "Bees build."),
            Memory("new", "Crickets jump."),
        ],
    )
    after = dict(await database.fetch(vectors))
    assert after.keys() == {"new", "other", "same"}
    assert after["same"] == before["same"]
    assert after["other"] != before["other"]
    assert await database.fetchval("SELECT count(*) FROM context_memory_pending") == 0
    found = {one.memory.id: one.memory for one in await hybrid.search("acme", MemoryQuery("", 10))}
    assert (found["new"].text, found["other"].text) == ("Crickets jump.", "Bees build.")
    assert found["same"].tags == ("soil",)


async def test_a_text_without_digest_that_gets_one_is_embedded(
    hybrid: PostgresMemory, database: asyncpg.Connection
) -> None:
    await database.execute("SELECT set_config('context_builder.tenant', 'acme', false)")
    remember = "SELECT context_memory_remember('acme', $1::jsonb)"
    for digest in (None, "00"):
        await database.execute("DELETE FROM context_memory_pending")
        await database.execute(
            remember, json.dumps([{"id": "m", "kind": "message", "text": f"Ants dig {digest}.", "digest": digest}])
        )
        assert await database.fetchval("SELECT id FROM context_memory_pending") == "m"
