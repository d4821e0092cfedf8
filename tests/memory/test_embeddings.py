"""An embedder that fails or is slow costs nothing but its own hits, and what it left out is embedded later."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import asyncpg
import pytest
from structlog.testing import capture_logs

from context_builder.errors import DatabaseRejected
from context_builder.memory.embedder import Embedding
from context_builder.memory.memory import Memory, MemoryQuery
from context_builder.memory.sql_memory import PostgresMemory, SqlEmbeddings
from context_builder.testing import ManualClock
from tests.memory.vectors import LetterEmbedder
from tests.services.waiting import PATIENCE, wait_until


async def nowhere(function: str, tenant_id: str, **_: object) -> list[object]:
    raise AssertionError("the database was not to be asked")


async def test_a_slow_embedder_is_waited_for_briefly_and_then_left_alone(embedder: LetterEmbedder) -> None:
    clock = ManualClock()
    embeddings = SqlEmbeddings(embedder, nowhere, query_time=0.001, monotonic=lambda: clock.now().monotonic)
    embedder.gate.clear()
    with capture_logs() as logs:
        assert [await embeddings.of_query("listen") for _ in range(5)] == [None] * 5
    assert [entry["reason"] for entry in logs] == ["no answer within 1 ms: searched by words alone"] * 3
    embedder.gate.set()
    assert await embeddings.of_query("listen") is None
    clock.advance(15.0)
    assert await embeddings.of_query("listen") is not None


@pytest.mark.engines
async def test_words_answer_while_the_embedder_hangs(migrated_url: str, embedder: LetterEmbedder) -> None:
    memory = PostgresMemory(migrated_url, embedder, query_time=0.01)
    await memory.remember("acme", [Memory("a", "listen")])
    embedder.gate.clear()
    async with asyncio.timeout(PATIENCE):
        found = [await memory.search("acme", MemoryQuery("listen")) for _ in range(5)]
    assert [one.origins for hits in found for one in hits] == [("full_text",)] * 5
    await memory.close()


@pytest.mark.engines
async def test_in_the_background_nobody_waits_for_embeddings(migrated_url: str, embedder: LetterEmbedder) -> None:
    memory = PostgresMemory(migrated_url, embedder, in_background=True)
    embedder.gate.clear()
    async with asyncio.timeout(PATIENCE):
        for tenant_id in ("acme", "other"):
            await memory.remember(tenant_id, [Memory(f"{number}", f"listen {number}") for number in range(20)])
    await embedder.asked.wait()
    assert {one.origins for one in await memory.search("acme", MemoryQuery("", limit=20))} == {("newest",)}
    embedder.gate.set()
    await wait_until(lambda: len(embedder.embedded) == 40, "all are embedded")
    await memory.remember("acme", [Memory("late", "silent")])
    await wait_until(lambda: len(embedder.embedded) == 41, "so is what came later")
    await memory.close()


@pytest.mark.engines
async def test_a_memory_that_is_closed_leaves_the_rest_for_the_next(
    migrated_url: str, embedder: LetterEmbedder
) -> None:
    memory = PostgresMemory(migrated_url, embedder, in_background=True)
    embedder.gate.clear()
    await memory.remember("acme", [Memory("a", "listen")])
    await embedder.asked.wait()
    await memory.close()
    embedder.gate.set()
    again = PostgresMemory(migrated_url, embedder, in_background=True)
    await again.remember("acme", [Memory("b", "silence")])
    await wait_until(lambda: len(embedder.embedded) == 2, "both are embedded")
    await again.close()


@pytest.mark.engines
async def test_what_is_remembered_is_there_before_it_is_embedded(
    hybrid: PostgresMemory, memory: PostgresMemory, embedder: LetterEmbedder
) -> None:
    embedder.gate.clear()
    remembering = asyncio.create_task(hybrid.remember("acme", [Memory("a", "listen")]))
    await embedder.asked.wait()
    assert [one.origins for one in await memory.search("acme", MemoryQuery("listen"))] == [("full_text",)]
    embedder.gate.set()
    await remembering
    assert (await hybrid.search("acme", MemoryQuery("silent")))[0].origins == ("vector",)


@pytest.mark.engines
async def test_what_could_not_be_embedded_is_embedded_when_something_else_is_remembered(
    hybrid: PostgresMemory, embedder: LetterEmbedder
) -> None:
    embedder.failing = True
    with capture_logs() as logs:
        await hybrid.remember("acme", [Memory("a", "listen"), Memory("b", "fizz")])
        found = await hybrid.search("acme", MemoryQuery("listen"))
    assert [entry["event"] for entry in logs] == ["memory.embedding_failed"] * 2
    assert [one.origins for one in found] == [("full_text",)]
    embedder.failing = False
    await hybrid.remember("acme", [Memory("c", "buzz")])
    assert sorted(embedder.embedded) == ["buzz", "fizz", "listen"]
    found = await hybrid.search("acme", MemoryQuery("silent"))
    assert (found[0].memory.id, found[0].origins) == ("a", ("vector",))


@pytest.mark.engines
async def test_what_an_embedder_was_too_busy_for_is_embedded_when_it_is_not(
    migrated_url: str, embedder: LetterEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("context_builder.memory.sql_memory.AGAIN_SECONDS", 0.02)
    memory = PostgresMemory(migrated_url, embedder)
    embedder.failing = True
    await memory.remember("acme", [Memory("last", "listen")])
    embedder.failing = False
    await wait_until(lambda: len(embedder.embedded) == 1, "the last words are embedded by themselves")
    await memory.close()


@pytest.mark.engines
async def test_a_text_that_the_embedder_refuses_keeps_no_other_from_being_embedded(migrated_url: str) -> None:
    class Picky(LetterEmbedder):
        async def embed(self, texts: Sequence[str]) -> list[Embedding]:
            if any("refused" in text for text in texts):
                raise DatabaseRejected("it answers with status 400")
            return await super().embed(texts)

    embedder = Picky()
    memory = PostgresMemory(migrated_url, embedder)
    await memory.remember("acme", [*(Memory(f"m-{n}", f"text {n}") for n in range(5)), Memory("r", "refused words")])
    assert sorted(one for one in set(embedder.embedded) if "probe" not in one) == [f"text {n}" for n in range(5)]
    before = len(embedder.embedded)
    await memory.remember("acme", [Memory("another", "another")])
    assert embedder.embedded[before:] == ["another"], "what was refused is not tried for ever"
    assert [one.memory.id for one in await memory.search("acme", MemoryQuery("refused", threshold=0.3))] == ["r"]
    await memory.close()


@pytest.mark.engines
async def test_an_embedder_that_refuses_everything_is_asked_little_and_nothing_is_given_up(migrated_url: str) -> None:
    class Refusing(LetterEmbedder):
        refusals = 0
        open = False

        async def embed(self, texts: Sequence[str]) -> list[Embedding]:
            if self.open:
                return await super().embed(texts)
            self.refusals += 1
            raise DatabaseRejected("it answers with status 401")

    embedder = Refusing()
    memory = PostgresMemory(migrated_url, embedder)
    await memory.remember("acme", [Memory(f"m-{n}", f"text {n}") for n in range(64)])
    assert embedder.refusals <= 8
    embedder.open = True
    await memory.remember("acme", [Memory("more", "more")])
    assert len(embedder.embedded) == 65
    await memory.close()


@pytest.mark.engines
async def test_a_large_gap_closes_batch_by_batch(migrated_url: str, embedder: LetterEmbedder) -> None:
    plain = PostgresMemory(migrated_url)
    await plain.remember("acme", [Memory(f"m-{n}", f"text {n}") for n in range(7)])
    memory = PostgresMemory(migrated_url, embedder)
    memory._batch = 2
    for count in (4, 8, 10):
        await memory.remember("acme", [Memory(f"more than {count}", f"another {count}")])
        assert len(embedder.embedded) == count
    await memory.close()
    await plain.close()


@pytest.mark.engines
async def test_remembered_again_it_is_embedded_by_the_embedder_of_now(migrated_url: str) -> None:
    class OtherEmbedder(LetterEmbedder):
        name = "other"

    before, now = (PostgresMemory(migrated_url, embedder) for embedder in (LetterEmbedder(), OtherEmbedder()))
    await before.remember("acme", [Memory("a", "listen")])
    assert await now.search("acme", MemoryQuery("silent")) == []
    await now.remember("acme", [Memory("a", "listen")])
    assert [found.memory.id for found in await now.search("acme", MemoryQuery("silent"))] == ["a"]
    await before.close()
    await now.close()


@pytest.mark.engines
async def test_a_memory_is_not_written_anew_for_its_embedding(
    hybrid: PostgresMemory, embedder: LetterEmbedder, database: asyncpg.Connection
) -> None:
    """Its former version would slow the tenant's searches until the table of all tenants is vacuumed."""
    await hybrid.remember("acme", [Memory("one", "listen"), Memory("two", "enlist")])
    await hybrid.remember("acme", [Memory("two", "enlist", tags=("a",))])
    assert len(embedder.embedded) == 2
    by_its_embedding = "SELECT m.xmin = v.xmin FROM context_memories AS m JOIN context_memory_vectors AS v USING (id)"
    assert [row[0] for row in await database.fetch(by_its_embedding)] == [False, False]


@pytest.mark.engines
async def test_what_is_forgotten_is_not_to_be_embedded_any_more(
    memory: PostgresMemory, database: asyncpg.Connection
) -> None:
    await memory.remember("acme", [Memory("one", "listen"), Memory("two", "enlist")])
    await memory.forget("acme", ids=["one"])
    assert [row["id"] for row in await database.fetch("SELECT id FROM context_memory_pending")] == ["two"]


@pytest.mark.engines
async def test_what_has_no_word_of_the_query_is_as_alike_as_its_meaning(hybrid: PostgresMemory) -> None:
    await hybrid.remember("acme", [Memory("a", "listen"), Memory("b", "fizz buzz")])
    (found,) = await hybrid.search("acme", MemoryQuery("silent", threshold=0.5))
    assert (found.memory.id, found.origins) == ("a", ("vector",))
    for query in ("xxx", "who am i"):
        assert await hybrid.search("acme", MemoryQuery(query, threshold=0.5)) == []
    assert await hybrid.search("acme", MemoryQuery("xxx", embedding=[-1.0] * 26)) == []


@pytest.mark.engines
async def test_a_small_tenant_beside_a_large_one_finds_all_of_its_own(hybrid: PostgresMemory) -> None:
    await hybrid.remember("large", [Memory(f"l-{n}", f"silent {n}") for n in range(1_000)])
    await hybrid.remember("small", [Memory(f"s-{n}", f"{'buzz ' * n}fizz") for n in range(20)])
    found = await hybrid.search("small", MemoryQuery("listen", 20))
    assert [one.origins for one in found] == [("vector",)] * 20


class OtherEmbedder(LetterEmbedder):
    """The same figures under another name, and each of them so many times."""

    def __init__(self, name: str = "others", times: int = 2) -> None:
        super().__init__()
        self.name = name
        self._times = times

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [embedding * self._times for embedding in await super().embed(texts)]


TALK = [Memory(f"m-{number:03}", text) for number, text in enumerate(["listen", *(["buzz"] * 149)])]


async def by_meaning(memory: PostgresMemory) -> list[str]:
    """What is found of a query that shares no word with it."""
    found = await memory.search("acme", MemoryQuery("silent", limit=3))
    return [one.memory.id for one in found if one.memory.text == "listen" and "vector" in one.origins]


@pytest.mark.engines
@pytest.mark.parametrize("others", [OtherEmbedder(), OtherEmbedder("letters"), OtherEmbedder(times=1)])
async def test_what_another_embedder_embedded_is_embedded_again_beside_what_is_new(
    migrated_url: str, embedder: LetterEmbedder, others: OtherEmbedder
) -> None:
    first = PostgresMemory(migrated_url, embedder)
    await first.remember("acme", TALK)
    assert await by_meaning(first) == ["m-000"]
    await first.close()

    memory = PostgresMemory(migrated_url, others, query_time=5.0)
    assert await by_meaning(memory) == []  # and no error: words answer meanwhile
    assert [one.memory.id for one in await memory.search("acme", MemoryQuery("listen", limit=1))] == ["m-000"]
    with capture_logs() as logs:
        await memory.remember("acme", [Memory("late", "hum")])
        await wait_until(lambda: any(entry["event"] == "memory.reembedded" for entry in logs), "all is embedded again")
    assert [entry["memories"] for entry in logs if entry["event"].startswith("memory.re")] == [150, 150]
    assert await by_meaning(memory) == ["m-000"]
    await memory.remember("acme", [Memory("later", "hum")])
    assert len(others.embedded) < 160  # once
    await memory.close()


@pytest.mark.engines
async def test_what_another_embedder_embedded_is_embedded_again_at_a_start_too(
    migrated_url: str, embedder: LetterEmbedder
) -> None:
    first = PostgresMemory(migrated_url, embedder)
    await first.remember("acme", TALK)
    await first.close()
    memory = PostgresMemory(migrated_url, OtherEmbedder(), query_time=5.0)
    assert await memory.embed_missing("acme") == 150
    assert await by_meaning(memory) == ["m-000"]
    assert await memory.embed_missing("acme") == 0
    await memory.close()


@pytest.mark.engines
async def test_meaning_counts_more_where_walks_begin_than_where_passages_are_ranked(
    migrated_url: str, embedder: LetterEmbedder
) -> None:
    texts = {"words": "silent listen xyzxyz", "meaning": "tinsel enlist", **{f"f{at}": "zz " * at for at in range(3)}}
    memory = PostgresMemory(migrated_url, embedder)
    await memory.remember("acme", [Memory(name, text, "document") for name, text in texts.items()])
    found = {one.memory.id: one for one in await memory.search("acme", MemoryQuery("silent listen", standalone=True))}
    alone = {one.memory.id: one for one in await memory.search("acme", MemoryQuery("silent listen"))}
    await memory.close()
    words, meaning = found["words"], found["meaning"]
    assert words.score > meaning.score
    assert words.seed / meaning.seed < words.score / meaning.score
    assert 0 < meaning.seed <= max(one.score for one in found.values())
    assert {one.seed for one in alone.values()} == {0.0}


@pytest.mark.engines
async def test_how_much_is_embedded_and_is_left_is_told(migrated_url: str, embedder: LetterEmbedder) -> None:
    by_words = PostgresMemory(migrated_url)
    await by_words.remember("acme", TALK[:20])
    await by_words.close()
    memory = PostgresMemory(migrated_url, embedder)
    told: list[tuple[int, int]] = []
    assert await memory.embed_missing("acme", lambda done, total: told.append((done, total))) == 20
    assert told == [(0, 20), (8, 20), (16, 20), (20, 20)]
    await memory.close()


@pytest.mark.engines
async def test_what_is_edited_or_forgotten_while_it_is_embedded_again_stays_so(
    migrated_url: str, embedder: LetterEmbedder
) -> None:
    first = PostgresMemory(migrated_url, embedder)
    await first.remember("acme", TALK)
    await first.close()
    others = OtherEmbedder()
    memory = PostgresMemory(migrated_url, others, query_time=5.0, in_background=True)
    await memory.remember("acme", [Memory("late", "hum")])
    await others.asked.wait()
    await memory.forget("acme", ids=["m-149"])
    await memory.remember("acme", [Memory("m-001", "listen, edited")])
    await wait_until(lambda: len(others.embedded) >= 150, "all is embedded again")
    await memory.embed_missing("acme")
    found = {one.memory.id for one in await memory.search("acme", MemoryQuery("silent", limit=100)) if one.origins}
    assert "m-149" not in found
    assert {"m-000", "m-001"} <= found
    await memory.close()


@pytest.mark.engines
async def test_an_embedder_that_fails_meanwhile_is_waited_for(
    migrated_url: str, embedder: LetterEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("context_builder.memory.sql_memory.AGAIN_SECONDS", 0.05)
    first = PostgresMemory(migrated_url, embedder)
    await first.remember("acme", TALK[:1])
    await first.close()
    others = OtherEmbedder()
    memory = PostgresMemory(migrated_url, others, query_time=5.0)
    await memory.remember("acme", [Memory("late", "hum")])
    others.failing = True
    others.gate.set()
    await memory.remember("acme", [Memory("later", "hum")])
    others.failing = False
    await wait_until(lambda: by_meaning(memory), "it is embedded again")
    await memory.close()


@pytest.mark.engines
@pytest.mark.parametrize("times", [3072 // 26, 4096 // 26, 8192 // 26])
@pytest.mark.parametrize("memories", [3, 1_100])
async def test_embeddings_of_thousands_of_dimensions_are_searched(migrated_url: str, times: int, memories: int) -> None:
    memory = PostgresMemory(migrated_url, OtherEmbedder(times=times), query_time=5.0)
    await memory.remember(
        "acme", [Memory("m-000", "listen"), *(Memory(f"b-{n}", f"buzz {n}") for n in range(memories))]
    )
    await memory.embed_missing("acme")
    await memory.remember("acme", [Memory("late", "buzz")])  # by now the tenant may have an index of its own
    assert await by_meaning(memory) == ["m-000"]
    await memory.close()


@pytest.mark.engines
async def test_more_dimensions_than_can_be_searched_are_told(migrated_url: str) -> None:
    memory = PostgresMemory(migrated_url, OtherEmbedder(times=16_400 // 26 + 1), query_time=5.0)
    with capture_logs() as logs:
        await memory.remember("acme", TALK[:1])
        found = await memory.search("acme", MemoryQuery("listen"))
    assert [entry["event"] for entry in logs] == ["memory.embeddings_unsupported"]
    assert [one.origins for one in found] == [("full_text",)]
    await memory.close()
